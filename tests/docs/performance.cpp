// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What docs/guide/fast.md and memory.md show, and that it does what is said there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::Context;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

namespace {

// [output]
struct Scale {
  float factor;
  auto forward(Context auto& ctx, View<const float, 1> x) const {
    auto y = fanout::output<float>(ctx);  // this shard's rows of the result: written once, where they stay
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = factor * x[i];
    return y;
  }
};
// [/output]

struct ScaleTwice {
  float factor;
  auto forward(View<const float, 1> x) const {
    Tensor<float, 1> y(x.size());  // set to zero, written, and copied into the result when all shards have ended
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = factor * x[i];
    return y;
  }
};

// [grain]
/// Shares rows out evenly, to no more devices than get so many rows each.
struct AtLeast {
  std::size_t rows_each;
  fanout::Plan operator()(std::size_t rows, std::size_t devices) const {
    return fanout::EvenSplit{}(rows, std::clamp(rows / rows_each, std::size_t{1}, devices));
  }
};
// [/grain]

Tensor<float, 1> count_to(std::size_t n) {
  Tensor<float, 1> x(n);
  std::iota(x.begin(), x.end(), 0.0F);
  return x;
}

}  // namespace

TEST_CASE("an output and a returned tensor give the same result") {
  const Tensor<float, 1> x = count_to(10);
  const ParallelModel once{Scale{2}, host_devices(3)};
  const ParallelModel twice{ScaleTwice{2}, host_devices(3)};
  const auto y = once(x);
  CHECK(std::vector(y.begin(), y.end()) == std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18});
  const auto z = twice(x);
  CHECK(std::equal(y.begin(), y.end(), z.begin(), z.end()));
}

TEST_CASE("a split may leave devices out of small batches") {
  const auto shards = [](std::size_t rows) { return AtLeast{100}(rows, 4).size(); };
  CHECK(shards(0) == 1);
  CHECK(shards(99) == 1);
  CHECK(shards(250) == 2);
  CHECK(shards(100'000) == 4);
  const Scale scale{2};
  const auto devices = host_devices(4);
  // [use_grain]
  const ParallelModel model{scale, devices, fanout::Options{.split = AtLeast{.rows_each = 2000}}};
  // [/use_grain]
  const auto y = model(count_to(5000));
  CHECK(y[4999] == 9998);
}

TEST_CASE("a result can be written straight into the caller's memory") {
  const ParallelModel model{Scale{2}, host_devices(2)};
  const auto batches = std::vector{count_to(4), count_to(4)};
  float sum = 0;
  // [into]
  Tensor<float, 1> y(4);
  auto call = model.into(y);
  for (const auto& x : batches) {
    call(x);  // no new array, and none that is recycled: the same memory each time
    sum += y[3];
  }
  // [/into]
  CHECK(sum == 12);
}

TEST_CASE("rows can be first touched by the device that uses them") {
  constexpr std::size_t rows = 1000;
  const auto devices = host_devices(2);
  // [first_touch]
  auto x = Tensor<float, 1>::uninitialized(rows);  // addresses, no pages yet
  const ParallelModel fill{[](Context auto& ctx, View<float, 1> mine) {
                             std::iota(mine.begin(), mine.end(), static_cast<float>(ctx.rows().first));
                           },
                           devices};
  fill(fanout::inout(x));  // each page lies near the device that writes it first
  // [/first_touch]
  CHECK(x[0] == 0);
  CHECK(x[999] == 999);
}

TEST_CASE("reductions need no array of partial results") {
  const auto devices = host_devices(3);
  // [psum]
  const ParallelModel statistics{[](View<const float, 1> x) {
                                   float sum = 0;  // on the stack: shards share no cache line
                                   for (const float value : x) sum += value;
                                   return std::tuple{fanout::psum(sum), fanout::pmax(x[x.size() - 1])};
                                 },
                                 devices};
  const auto [sum, last] = statistics(count_to(100));  // two numbers
  // [/psum]
  CHECK(sum == 4950);
  CHECK(last == 99);
}
