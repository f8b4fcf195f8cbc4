// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that are made again with fewer rows on a device that ran out of memory.
#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>

#include "support/message_of.hpp"

using fanout::Context;
using fanout::DeviceId;
using fanout::EvenSplit;
using fanout::Options;
using fanout::OutOfMemory;
using fanout::ParallelModel;
using fanout::Plan;
using fanout::ReplicaError;
using fanout::simulated_devices;
using fanout::SimulatedDeviceOptions;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace shrink_test {

const DeviceId on_host{.kind = "host", .index = 0};

/// Uses 12 bytes for each element: the input, scratch and the output.
struct Doubles {
  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    auto scratch = fanout::empty<float>(ctx, x.extent(0), x.extent(1));
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      for (std::size_t k = 0; k < x.extent(1); ++k) {
        scratch(i, k) = 2 * x(i, k);
        y(i, k) = scratch(i, k);
      }
    }
    return std::tuple(y, fanout::psum(x.extent(0)));
  }
};

Tensor<float, 2> ascending(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> x(rows, columns);
  std::iota(x.begin(), x.end(), 0.0F);
  return x;
}

struct Counts {
  int calls = 0;
  std::size_t forward(Context auto& ctx, View<const float, 2> x) {
    ++calls;
    return fanout::empty<float>(ctx, 100 * x.extent(0)).size();
  }
};

}  // namespace shrink_test

TEST_CASE("a call that runs out of memory is made again with half of that device's rows, until they fit") {
  std::vector<SimulatedDeviceOptions> options(3);
  options[1].memory = 150'000;  // 3,125 of its 10,000 rows of 48 bytes
  const ParallelModel model{shrink_test::Doubles{}, simulated_devices(options),
                            Options{.output = shrink_test::on_host, .measure = true, .shrink_on_out_of_memory = true}};
  const auto x = shrink_test::ascending(30'000, 4);
  const auto check = [&] {
    const auto [y, rows] = model(x);
    CHECK(rows == 30'000);
    REQUIRE(y.extents() == x.extents());
    for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(y.data()[i] == 2 * x.data()[i]);
  };
  check();
  CHECK(model.report().failed_calls() == 2);  // with 10,000 and 5,000 rows; 2,500 fit
  const auto before = model.report();
  for (int call = 0; call < 100; ++call) check();
  const auto after = model.report();
  CHECK(after.failed_calls() == 2);
  CHECK(after.devices()[1].rows - before.devices()[1].rows == 100 * 2500);
  CHECK(after.devices()[0].rows - before.devices()[0].rows == 100 * 13'750);

  // Another shape has limits of its own: these rows are smaller.
  const auto [y, rows] = model(shrink_test::ascending(12'000, 2));
  CHECK(rows == 12'000);
  CHECK(model.report().failed_calls() == 2);
  CHECK(model.report().devices()[1].rows - after.devices()[1].rows == 4000);
}

TEST_CASE("rows that fit nowhere are an error that says so, and the model works afterwards") {
  std::vector<SimulatedDeviceOptions> options(2);
  for (SimulatedDeviceOptions& each : options) each.memory = 100'000;
  const ParallelModel model{shrink_test::Doubles{}, simulated_devices(options),
                            Options{.output = shrink_test::on_host, .shrink_on_out_of_memory = true}};
  CHECK(says(message_of<OutOfMemory>([&] { model(shrink_test::ascending(10'000, 4)); }), "all devices together",
             "rows too many", "parts()"));
  CHECK(std::get<1>(model(shrink_test::ascending(1000, 4))) == 1000);
  for (const SimulatedDeviceOptions& each : options) CHECK(each.memory == 100'000);
}

TEST_CASE("without the option, and where calls cannot be made again, running out of memory is an error") {
  std::vector<SimulatedDeviceOptions> options(2);
  options[1].memory = 1000;
  const auto x = shrink_test::ascending(100, 4);
  SUBCASE("without the option") {
    const ParallelModel model{shrink_test::Doubles{}, simulated_devices(options),
                              Options{.output = shrink_test::on_host}};
    for (int call = 0; call < 3; ++call) {
      try {
        model(x);
        FAIL("the memory was enough");
      } catch (const OutOfMemory&) {  // while its inputs were copied
      } catch (const ReplicaError& error) {
        CHECK(error.get_if<OutOfMemory>() != nullptr);
      }
    }
  }
  SUBCASE("a forward that is not const") {
    options[1].memory = 2000;
    const ParallelModel model{shrink_test::Counts{}, simulated_devices(options),
                              Options{.output = shrink_test::on_host, .shrink_on_out_of_memory = true}};
    CHECK(says(message_of<ReplicaError>([&] { model(x); }), "since forward is not const"));
  }
}
