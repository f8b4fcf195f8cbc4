// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/replica/output_sender.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include <fanout/fanout.hpp>

using fanout::MemorySpace;
using fanout::Output;
using fanout::Plan;
using fanout::RowRange;
using fanout::backend::Memory;
using fanout::backend::MemoryOperations;
using fanout::detail::CallSettings;
using fanout::detail::CallState;
using fanout::detail::has_rows_to_send;
using fanout::detail::OutputSender;
using fanout::detail::Scratch;

namespace output_sender_test {

struct Both {
  Output<float, 2> y;
  double loss = 0;
};

static_assert(has_rows_to_send<Output<float, 2>>());
static_assert(has_rows_to_send<std::tuple<double, std::tuple<Output<int, 1>>>>());
static_assert(has_rows_to_send<Both>());
static_assert(!has_rows_to_send<double>());
static_assert(!has_rows_to_send<fanout::Tensor<float, 1>>());
static_assert(!has_rows_to_send<decltype(fanout::psum(Output<float, 1>(std::declval<Output<float, 1>>())))>(),
              "its rows are not concatenated");

int sent = 0;
bool can_send = true;
bool has_memory = true;

bool send(const MemorySpace&, void* to, const MemorySpace&, const void* from, std::size_t bytes) {
  if (!can_send) return false;
  ++sent;
  std::memcpy(to, from, bytes);
  return true;
}

void* allocate(const MemorySpace& space, std::size_t bytes) {
  if (!has_memory) throw fanout::OutOfMemory("for this test");
  return fanout::backend::host_memory_operations.allocate(space, bytes);
}

extern const MemoryOperations operations;
const MemoryOperations operations{.allocate = &allocate,
                                  .release = fanout::backend::host_memory_operations.release,
                                  .copy = fanout::backend::host_memory_operations.copy,
                                  .clear = fanout::backend::host_memory_operations.clear,
                                  .fresh = &operations,
                                  .send = &send};

/// A call of two shards of two and three rows, whose results are gathered in `target`, and the second one's memory.
struct Call {
  explicit Call(const Memory& target) : settings{.target = target} {
    sent = 0;
    can_send = has_memory = true;
  }

  /// A device's own output of the second shard: 10, 11, 12.
  Output<float, 1> own(const Memory& memory, std::size_t number = 0) {
    auto& buffer = scratch.make_buffer(memory, rows.size(), sizeof(float));
    buffer.number_is(number);
    Output<float, 1> output(buffer, buffer.row(0), memory.space, {0, rows.size()}, fanout::Extents<1>{rows.size()});
    for (std::size_t i = 0; i < rows.size(); ++i) output.data()[i] = static_cast<float>(10 + i);
    return output;
  }
  template <class X>
  void send(X& result) {
    OutputSender(state, rows, scratch).send(result);
  }
  /// Returns true if the shard's memory in this space is then released.
  template <class X>
  bool releases(X result, const Memory& memory) {
    scratch.allocate(memory, 100);
    OutputSender sender(state, rows, scratch);
    sender.send(result);
    sender.template release_memory_in<X>(memory.space);
    return scratch.empty();
  }

  Plan plan{{{0, 2}, 0}, {{2, 5}, 1}};
  RowRange rows{2, 5};
  CallSettings settings;
  CallState state{plan, settings};
  Scratch scratch;
};

const Memory first{{{.kind = "made", .index = 0}}, &operations};
const Memory second{{{.kind = "made", .index = 1}}, &operations};

TEST_CASE("the rows of an output are sent to where they belong in the buffer that all shards share") {
  Call call(first);
  std::tuple result(call.own(second), 1.5, std::tuple(call.own(second, 1)));
  call.send(result);
  CHECK(sent == 2);
  const auto& y = std::get<0>(result);
  CHECK(y.space() == first.space);
  CHECK(reinterpret_cast<const std::byte*>(y.data()) == call.state.outputs.get(0, 5, sizeof(float)).buffer->row(2));
  for (std::size_t i = 0; i < 3; ++i) CHECK(y.data()[i] == static_cast<float>(10 + i));
  CHECK(&std::get<0>(std::get<2>(result)).buffer() == call.state.outputs.get(1, 5, sizeof(float)).buffer);
  CHECK(std::get<1>(result) == 1.5);
}

TEST_CASE("an output that cannot be sent stays on its device") {
  const auto stays = [](Call& call, Output<float, 1> output) {
    const Output<float, 1> before = output;
    call.send(output);
    return output.data() == before.data() && output.space() == before.space();
  };
  SUBCASE("since the devices cannot copy") {
    Call call(first);
    auto output = call.own(second);
    can_send = false;
    CHECK(stays(call, output));
  }
  SUBCASE("since its memory has no such operation") {
    MemoryOperations without = operations;
    without.send = nullptr;
    without.fresh = &without;
    Call call(first);
    CHECK(stays(call, call.own({second.space, &without})));
    CHECK(sent == 0);
  }
  SUBCASE("since the results are in memory of another kind") {
    Call call(Memory{});
    CHECK(stays(call, call.own(second)));
    CHECK(sent == 0);
  }
  SUBCASE("since it is there already") {
    Call call(second);
    CHECK(stays(call, call.own(second)));
    CHECK(sent == 0);
  }
  SUBCASE("since another shard's output has rows of another size") {
    Call call(first);
    call.state.outputs.get(0, 5, 2 * sizeof(float));
    CHECK(stays(call, call.own(second)));
    CHECK(sent == 0);
  }
  SUBCASE("since there is no memory for the results, which the call says when it gathers") {
    Call call(first);
    auto output = call.own(second);
    has_memory = false;
    CHECK(stays(call, output));
    CHECK(sent == 0);
  }
}

TEST_CASE("once the result has been sent, the shard's memory is released") {
  Call call(first);
  CHECK(call.releases(std::tuple(call.own(second), fanout::psum(1.5)), second));
  CHECK(call.releases(fanout::Tensor<float, 1>(3), second));
}

TEST_CASE("the shard's memory is kept while the result shows it") {
  SUBCASE("since an output was not sent") {
    Call call(first);
    can_send = false;
    CHECK_FALSE(call.releases(call.own(second), second));
  }
  SUBCASE("since an output is under a rule") {
    Call call(first);
    CHECK_FALSE(call.releases(std::tuple(call.own(second), fanout::psum(call.own(second, 1))), second));
    CHECK(sent == 1);
  }
  SUBCASE("since there is a view in it") {
    Call call(first);
    CHECK_FALSE(call.releases(std::tuple(call.own(second), fanout::View<const float, 1>()), second));
    CHECK(sent == 1);
  }
  SUBCASE("since it is in the memory of the results") {
    Call call(second);
    CHECK_FALSE(call.releases(call.own(second), second));
  }
}

}  // namespace output_sender_test
