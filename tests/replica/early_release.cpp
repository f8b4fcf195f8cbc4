// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/replica/early_release.hpp>

#include <doctest/doctest.h>

#include <complex>
#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

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
using fanout::detail::can_leave_device;

namespace early_release_test {

struct Both {
  Tensor<float, 2> y;
  double loss = 0;
};
struct Shows {
  View<const float, 1> x;
  int rows = 0;
};

static_assert(can_leave_device<Output<float, 2>>());
static_assert(can_leave_device<Tensor<int, 1>>());
static_assert(can_leave_device<std::complex<float>>());
static_assert(can_leave_device<std::vector<int>>());
static_assert(can_leave_device<std::tuple<Output<float, 1>, double, std::tuple<Tensor<int, 3>>>>());
static_assert(can_leave_device<decltype(fanout::psum(1.0))>());
static_assert(can_leave_device<Both>());
static_assert(!can_leave_device<View<float, 1>>(), "nobody can tell whose memory it shows");
static_assert(!can_leave_device<StridedView<float, 2>>());
static_assert(!can_leave_device<std::span<int>>());
static_assert(!can_leave_device<std::tuple<int, View<float, 1>>>());
static_assert(!can_leave_device<decltype(fanout::psum(View<float, 1>()))>());
static_assert(!can_leave_device<Shows>());
static_assert(!can_leave_device<std::vector<View<float, 1>>>());

const Options on_host{
    .output = fanout::DeviceId{.kind = "host", .index = 0}, .measure = true, .shrink_on_out_of_memory = true};

Tensor<float, 1> ascending(std::size_t rows) {
  Tensor<float, 1> x(rows);
  for (std::size_t i = 0; i < rows; ++i) x(i) = static_cast<float>(i);
  return x;
}

}  // namespace early_release_test

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
