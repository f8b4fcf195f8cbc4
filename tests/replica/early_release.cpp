// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <doctest/doctest.h>

#include <complex>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/fanout.hpp>
#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>

using fanout::Context;
using fanout::Options;
using fanout::Output;
using fanout::ParallelModel;
using fanout::simulated_devices;
using fanout::SimulatedDeviceOptions;
using fanout::StridedView;
using fanout::Tensor;
using fanout::View;

namespace early_release_test {

const Options on_host{
    .output = fanout::DeviceId{.kind = "host", .index = 0}, .measure = true, .shrink_on_out_of_memory = true};

Tensor<float, 1> ascending(std::size_t rows) {
  Tensor<float, 1> x(rows);
  for (std::size_t i = 0; i < rows; ++i) x(i) = static_cast<float>(i);
  return x;
}

struct Both {
  Tensor<float, 1> y;
  std::vector<double> loss;
};

/// Calls a model on 1,000 rows of 4 bytes and a device with so much memory.
template <class F>
void call(const F& forward, std::size_t memory) {
  std::vector<SimulatedDeviceOptions> options(1);
  options[0].memory = memory;
  const ParallelModel model{forward, simulated_devices(options), on_host};
  static_cast<void>(model(ascending(1000)));
}

/// True if a call ends on a device whose memory is less than all rows need: then each shard's memory is released before
/// the next one begins.
template <class F>
bool fits(const F& forward) {
  call(forward, 100'000);
  try {
    call(forward, 3000);
    return true;
  } catch (const fanout::OutOfMemory&) {
    return false;
  } catch (const fanout::ReplicaError& error) {
    CHECK(error.get_if<fanout::OutOfMemory>() != nullptr);
    return false;
  }
}

}  // namespace early_release_test

TEST_CASE("a shard's memory is released early if no result can show it") {
  using early_release_test::fits;
  const auto copy = [](View<const float, 1> x) { return fanout::to_host(x); };
  CHECK(fits([](Context auto& ctx, View<const float, 1>) { return fanout::output<float>(ctx); }));
  CHECK(fits(copy));
  CHECK(fits([](View<const float, 1>) { return std::complex<float>(1, 2); }));
  CHECK(fits([](View<const float, 1> x) { return std::vector<int>(x.size()); }));
  CHECK(fits([copy](Context auto& ctx, View<const float, 1> x) {
    return std::tuple(fanout::output<float>(ctx), 1.0, std::tuple(copy(x)));
  }));
  CHECK(fits([](View<const float, 1>) { return fanout::psum(1.0); }));
  CHECK(fits([copy](View<const float, 1> x) { return early_release_test::Both{copy(x), {1.0}}; }));

  CHECK_FALSE(fits([](View<const float, 1> x) { return x; }));
  CHECK_FALSE(fits([](View<const float, 1> x) { return StridedView<const float, 1>(x); }));
  CHECK_FALSE(fits([](View<const float, 1> x) { return std::tuple(1, x); }));
  CHECK_FALSE(fits([](View<const float, 1> x) { return fanout::pmax(x); }));
  CHECK_FALSE(fits([](View<const float, 1> x) { return std::vector{x}; }));
}

TEST_CASE("shards that ask for outputs in different orders keep their memory, and give the right results") {
  std::vector<SimulatedDeviceOptions> options(1);
  options[0].memory = 12'000;
  const ParallelModel model{[](Context auto& ctx, View<const float, 1> x) {
                              std::optional<Output<float, 1>> narrow;
                              std::optional<Output<double, 1>> wide;
                              if (ctx.rank() % 2 == 0) narrow = fanout::output<float>(ctx);
                              wide = fanout::output<double>(ctx);
                              if (!narrow) narrow = fanout::output<float>(ctx);
                              auto a = *narrow;
                              auto b = *wide;
                              for (std::size_t i = 0; i < x.size(); ++i) {
                                a(i) = x(i);
                                b(i) = 2.0 * static_cast<double>(x(i));
                              }
                              return std::tuple(a, b);
                            },
                            simulated_devices(options), early_release_test::on_host};
  const auto x = early_release_test::ascending(1000);
  const auto [a, b] = model(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    REQUIRE(a(i) == x(i));
    REQUIRE(b(i) == 2.0 * static_cast<double>(x(i)));
  }
}

TEST_CASE("a view that shows a shard's input stays valid until results are gathered") {
  std::vector<SimulatedDeviceOptions> options(1);
  options[0].memory = 5000;  // 4,000 of inputs, and scratch for 250 rows
  const ParallelModel model{[](Context auto& ctx, View<const float, 1> x) {
                              static_cast<void>(fanout::empty<float>(ctx, x.size() > 250 ? 100 * x.size() : 1));
                              return x;
                            },
                            simulated_devices(options), early_release_test::on_host};
  const auto x = early_release_test::ascending(1000);
  const auto y = model(x);
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(y(i) == x(i));
  CHECK(model.report().devices()[0].most_rows == 250);
}
