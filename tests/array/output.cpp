// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/output.hpp>

#include "memory/counting_memory.hpp"

using fanout::Extents;
using fanout::Output;
using fanout::Tensor;
using fanout::View;
using fanout::backend::Memory;
using fanout::detail::OutputBuffer;
using fanout_test::CountingMemory;

namespace {

static_assert(std::is_trivially_copyable_v<Output<float, 2>>, "cheap to copy");
static_assert(std::is_convertible_v<Output<float, 2>, View<const float, 2>>);
static_assert(std::is_convertible_v<Output<float, 2>, Tensor<float, 2>>);
static_assert(!std::is_convertible_v<Output<float, 2>, Tensor<float, 1>>);
static_assert(!std::is_convertible_v<Output<float, 2>, Tensor<double, 2>>);
static_assert(fanout::ArrayLeaf<Output<float, 2>>);
static_assert(std::is_same_v<fanout::leaf_traits<Output<float, 2>>::piece_type, View<const float, 2>>);

/// A buffer of rows of two floats, held as the call holds it.
struct Call {
  explicit Call(std::size_t rows, const Memory& memory = {})
      : buffer(new OutputBuffer(memory, rows, 2 * sizeof(float))) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { end(); }

  Output<float, 2> output(std::size_t begin, std::size_t end) const { return {*buffer, {begin, end}, {{end, 2}}}; }
  void end() {
    if (buffer != nullptr) std::exchange(buffer, nullptr)->release();
  }

  OutputBuffer* buffer;
};

}  // namespace

TEST_CASE("an output is a view of its rows of the buffer") {
  const Call call(5);
  const auto first = call.output(0, 2);
  const auto second = call.output(2, 5);
  CHECK(first.extents() == Extents<2>{{2, 2}});
  CHECK(second.extents() == Extents<2>{{3, 2}});
  CHECK(second.data() == first.data() + 4);
  CHECK(second.first_row() == 2);
  CHECK(&second.buffer() == call.buffer);
  second(0, 1) = 7;
  const void* const row = call.buffer->row(2);
  CHECK(static_cast<const float*>(row)[1] == 7);
  CHECK(call.buffer->holders() == 1);
}

TEST_CASE("an output without rows shows nothing, in any buffer") {
  const Call some(5);
  CHECK(some.output(5, 5).extents() == Extents<2>{{0, 2}});
  const Call none(0);
  const auto output = none.output(0, 0);
  CHECK(output.empty());
  CHECK(output.extents() == Extents<2>{{0, 2}});
  const Tensor<float, 2> tensor = output;
  CHECK(tensor.extents() == Extents<2>{{0, 2}});
  CHECK(none.buffer->holders() == 2);
}

TEST_CASE("an output becomes a tensor that shares its elements and holds the buffer") {
  const Call call(5);
  const auto output = call.output(2, 5);
  {
    Tensor<float, 2> tensor = output;
    CHECK(tensor.data() == output.data());
    CHECK(tensor.extents() == output.extents());
    CHECK(call.buffer->holders() == 2);
    tensor(0, 0) = 3;
    CHECK(output(0, 0) == 3);
    output(0, 1) = 4;
    CHECK(tensor(0, 1) == 4);
    const Tensor<float, 2> moved = std::move(tensor);
    CHECK(moved.data() == output.data());
    CHECK(call.buffer->holders() == 2);
  }
  CHECK(call.buffer->holders() == 1);
}

TEST_CASE("however an output is put into a tensor, it is shared and not copied") {
  const Call call(5);
  const auto output = call.output(0, 5);
  const Tensor<float, 2> direct(output);
  const Tensor<float, 2> braces{output};
  Tensor<float, 2> assigned;
  assigned = output;
  const std::optional<Tensor<float, 2>> optional(output);
  std::vector<Tensor<float, 2>> vector;
  vector.emplace_back(output);
  std::map<std::string, Tensor<float, 2>> map;
  map.emplace("key", output);
  for (const Tensor<float, 2>* tensor : {&direct, &braces, &std::as_const(assigned), &*optional}) {
    CHECK(tensor->data() == output.data());
  }
  CHECK(vector[0].data() == output.data());
  CHECK(map.at("key").data() == output.data());
  CHECK(call.buffer->holders() == 7);
}

TEST_CASE("a tensor of an output stays valid after the call") {
  Tensor<float, 2> kept;
  {
    Call call(5);
    const auto output = call.output(2, 5);
    output(2, 1) = 8;
    kept = output;
    call.end();
  }
  CHECK(kept(2, 1) == 8);
}

TEST_CASE("copies of a tensor of an output are ordinary tensors") {
  const Call call(5);
  const auto output = call.output(2, 5);
  output(2, 1) = 9;
  const Tensor<float, 2> tensor = output;
  const Tensor<float, 2> copy = tensor;
  CHECK(call.buffer->holders() == 2);
  CHECK(copy.data() != tensor.data());
  CHECK(copy.storage().owner() == nullptr);
  CHECK(copy.storage().memory().operations == &fanout::backend::host_memory_operations);
  CHECK(copy(2, 1) == 9);
  output(2, 1) = 10;
  CHECK(copy(2, 1) == 9);
}

TEST_CASE("an output in another memory becomes a tensor by a copy there") {
  CountingMemory counting;
  {
    const Call call(5, counting.memory());
    const auto output = call.output(2, 5);
    CHECK(output.space() == CountingMemory::space);
    const Tensor<float, 2> tensor = output;
    CHECK(tensor.space() == CountingMemory::space);
    CHECK(std::as_const(tensor).data() != output.data());
    CHECK(tensor.extents() == output.extents());
    CHECK(call.buffer->holders() == 1);
    CHECK(counting.copied == 1);
  }
  CHECK(counting.alive() == 0);
}
