// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/simulated/simulated_devices.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <fanout/base/error.hpp>

using fanout::Duration;
using fanout::simulated_devices;
using fanout::SimulatedDevice;
using fanout::SimulatedDeviceOptions;
using namespace std::chrono_literals;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

void check_refused(const SimulatedDeviceOptions& options, const std::string& field, const std::string& found) {
  INFO(field);
  try {
    simulated_devices({{}, options});
    FAIL("was not refused");
  } catch (const fanout::InvalidArgument& error) {
    const std::string text = error.what();
    CHECK(text.find("invalid ." + field + " of device 1 at simulated_devices") != std::string::npos);
    CHECK(text.find("found " + found) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("each call makes new devices, with a clock that begins at 0") {
  const auto one = simulated_devices({{}});
  const auto two = simulated_devices({{.rows_per_second = 2e6}, {.memory = 1 << 30, .fail_at = 17}});
  REQUIRE(one.size() == 1);
  REQUIRE(two.size() == 2);
  CHECK(two[0].options().rows_per_second == 2e6);
  CHECK(two[1].options().fail_at == 17);
  CHECK(two[1].free_memory() == std::size_t{1} << 30);
  CHECK(fanout::to_string(one[0].id()).starts_with("sim:"));
  CHECK(one[0] != two[0]);
  CHECK(two[1].id().index == two[0].id().index + 1);
  CHECK_FALSE(one[0].memory().space == two[0].memory().space);
  one[0].ran(10);
  CHECK(one[0].time() == 10'000);
  CHECK(two[0].time() == 0);
  CHECK((one | two).size() == 3);
  const std::vector<SimulatedDeviceOptions> listed(5, {.launch = 1us});
  CHECK(simulated_devices(listed).size() == 5);
}

TEST_CASE("bad options are refused with the device, the field and the value") {
  check_refused({.rows_per_second = 0}, "rows_per_second", "0.0");
  check_refused({.rows_per_second = -1}, "rows_per_second", "-1.0");
  check_refused({.rows_per_second = not_a_number}, "rows_per_second", "nan");
  check_refused({.launch = -5us}, "launch", "-5000 ns");
  check_refused({.bandwidth = 0}, "bandwidth", "0.0");
  check_refused({.bandwidth = not_a_number}, "bandwidth", "nan");
  check_refused({.latency = -1us}, "latency", "-1000 ns");
  check_refused({.memory = 0}, "memory", "0");
  check_refused({.fail_at = 3, .failures = 0}, "failures", "0");
  check_refused({.slow_down = {.at = -1s}}, "slow_down.at", "-1000000000 ns");
  check_refused({.slow_down = {.at = 2s, .until = 1s}}, "slow_down.until", "1000000000 ns");
  check_refused({.slow_down = {.factor = 0}}, "slow_down.factor", "0.0");
  check_refused({.slow_down = {.factor = endless}}, "slow_down.factor", "inf");
  check_refused({.slow_down = {.factor = not_a_number}}, "slow_down.factor", "nan");
  check_refused({.noise = -0.1}, "noise", "-0.1");
  check_refused({.noise = 1}, "noise", "1.0");
  check_refused({.noise = not_a_number}, "noise", "nan");
}

TEST_CASE("the bounds of options are allowed") {
  CHECK_NOTHROW(simulated_devices({{.rows_per_second = endless,
                                    .launch = 0s,
                                    .bandwidth = endless,
                                    .latency = Duration::forever(),
                                    .memory = 1,
                                    .slow_down = {.at = 0s, .until = 0s, .factor = 1e9},
                                    .noise = 0}}));
}

TEST_CASE("a simulation without devices is refused") {
  CHECK_THROWS_AS(simulated_devices({}), fanout::InvalidDeviceId);
}
