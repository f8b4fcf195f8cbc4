// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What docs/guide/memory.md says of memory and copies, and that it is so.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

namespace {

using fanout::broadcast;
using fanout::Context;
using fanout::dict;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using namespace fanout::literals;

/// Writes its rows through an output, and notes where they lie.
struct Copied {
  std::vector<const float*>* read;
  std::vector<const float*>* written;

  auto forward(Context auto& ctx, View<const float, 1> x) const {
    auto y = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i];
    (*read)[ctx.rank()] = x.data();
    (*written)[ctx.rank()] = y.data();
    return y;
  }
};

}  // namespace

TEST_CASE("documentation: on host devices arguments are read and outputs are written in place") {
  std::vector<const float*> read(2);
  std::vector<const float*> written(2);
  const ParallelModel model{Copied{&read, &written}, host_devices(2)};

  const Tensor<float, 1> x(6);
  const Tensor<float, 1> y = model(x);
  CHECK(read == std::vector{x.data(), x.data() + 3});
  CHECK(written == std::vector{y.data(), y.data() + 3});

  const std::vector<float> numbers(6);
  static_cast<void>(model(numbers));
  CHECK(read == std::vector{numbers.data(), numbers.data() + 3});

  Tensor<float, 1> mine(6);
  model.into(mine)(x);
  CHECK(written == std::vector<const float*>{mine.data(), mine.data() + 3});
}

TEST_CASE("documentation: broadcast and trees copy no elements, and rows of vectors are shown in place") {
  const Tensor<float, 1> x(6);
  const Tensor<float, 2> table({4, 4});
  const std::vector<std::vector<int>> lists(6);
  std::vector<std::tuple<const float*, const float*, const std::vector<int>*>> seen(2);
  const ParallelModel model{
      [&](Context auto& ctx, const auto& tree, View<const float, 2> whole, std::span<const std::vector<int>> rows) {
        seen[ctx.rank()] = {tree["x"_k].data(), whole.data(), rows.data()};
      },
      host_devices(2)};
  model(dict("x"_k = x.view()), broadcast(table), lists);
  CHECK(seen[0] == std::tuple{x.data(), table.data(), lists.data()});
  CHECK(seen[1] == std::tuple{x.data() + 3, table.data(), lists.data() + 3});
}

TEST_CASE("documentation: a tensor of forward's own is copied, or moved if there is one shard") {
  std::vector<const float*> made(2);
  const auto own = [&](Context auto& ctx, View<const float, 1> x) {
    Tensor<float, 1> y(x);
    made[ctx.rank()] = y.data();
    return y;
  };
  const Tensor<float, 1> x(6);
  const Tensor<float, 1> joined = ParallelModel{own, host_devices(2)}(x);
  CHECK(joined.data() != made[0]);
  CHECK(joined.data() != made[1]);
  const Tensor<float, 1> moved = ParallelModel{own, host_devices(1)}(x);
  CHECK(moved.data() == made[0]);
}

TEST_CASE("documentation: results own their memory, and views borrow it") {
  const auto doubled = [](Context auto& ctx, View<const float, 1> x) {
    auto y = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
    return y;
  };
  const std::vector<float> numbers{1, 2, 3, 4};
  // [lifetimes]
  Tensor<float, 1> y;
  {
    const ParallelModel model{doubled, host_devices(2)};
    y = model(numbers);
  }
  // y outlives the model and the arguments.
  View<const float, 1> first = y.rows({0, 2});  // shows memory of y
  const Tensor<float, 1> copy(first);           // has elements of its own
  y = Tensor<float, 1>(8);                      // y has other memory now: `first` dangles, `copy` does not
  // [/lifetimes]
  CHECK(copy[1] == 4);
  first = y;
  CHECK(first.size() == 8);

  const float* const memory = y.data();
  y = Tensor<float, 1>(first);  // moved, so it has the other tensor's memory
  CHECK(y.data() != memory);
  const float* const kept = y.data();
  y = copy;  // of another size
  CHECK(y.data() != kept);
  const float* const same = y.data();
  y = std::as_const(copy);
  CHECK(y.data() == same);
  const Tensor<float, 1> taken = std::move(y);
  CHECK(taken.data() == same);
}

TEST_CASE("documentation: tensors and outputs begin at a multiple of 64 bytes") {
  const auto offset = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 64; };
  for (const std::size_t size : {1U, 3U, 1000U}) CHECK(offset(Tensor<char, 1>(size).data()) == 0);
  std::vector<std::uintptr_t> scratch(2);
  const ParallelModel model{[&](Context auto& ctx, View<const char, 1> x) {
                              scratch[ctx.rank()] = offset(fanout::empty<char>(ctx, 3).data()) +
                                                    offset(fanout::empty<char>(ctx, 3).data());
                              return fanout::output<char>(ctx, x.size());
                            },
                            host_devices(2)};
  CHECK(offset(model(Tensor<char, 1>(6)).data()) == 0);
  CHECK(scratch == std::vector<std::uintptr_t>{0, 0});
}

TEST_CASE("documentation: an asynchronous call moves rvalues and borrows lvalues") {
  std::vector<const float*> read(2);
  std::vector<const float*> written(2);
  const ParallelModel model{Copied{&read, &written}, host_devices(2)};
  Tensor<float, 1> x(6);
  const float* const memory = x.data();
  model.async(x).get();
  CHECK(read[0] == memory);
  model.async(std::move(x)).get();
  CHECK(read[0] == memory);
}
