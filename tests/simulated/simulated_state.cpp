// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/simulated/simulated_state.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <fanout/base/error.hpp>

using fanout::SimulatedDeviceOptions;
using fanout::detail::Clock;
using fanout::detail::SimulatedState;
using fanout::detail::Simulation;
using namespace std::chrono_literals;

namespace {

/// A device without others. Its index is that of no other test.
struct AloneState {
  Simulation simulation;
  SimulatedState state;
  explicit AloneState(const SimulatedDeviceOptions& options, std::size_t position = 0)
      : state(simulation, position, 1'000'000, options) {}
  Clock::Time run(std::size_t rows, Clock::Time earliest = 0) { return state.run_shard(rows, earliest); }
};

}  // namespace

TEST_CASE("a shard takes its launch and its rows, after the device's earlier work") {
  AloneState device({.rows_per_second = 2e6, .launch = 10us});
  CHECK(device.run(100) == 60'000);
  CHECK(device.run(0) == 70'000);
  CHECK(device.run(1, 1'000'000) == 1'010'500);
  CHECK(device.state.busy().now() == 1'010'500);
  CHECK(device.simulation.now.now() == 0);
  AloneState instant({.rows_per_second = std::numeric_limits<double>::infinity()});
  CHECK(instant.run(1'000'000) == 0);
}

TEST_CASE("a slowed device computes more slowly from then on, and no longer than it is said to") {
  AloneState device({.rows_per_second = 1000, .slow_down = {.at = 10ms, .until = 30ms, .factor = 4}});
  CHECK(device.run(8) == 8'000'000);   // before
  CHECK(device.run(3) == 14'000'000);  // 2 ms before, 1 ms of work in 4 ms
  CHECK(device.run(4) == 30'000'000);  // to the end of it
  CHECK(device.run(5) == 35'000'000);  // after
  AloneState across({.rows_per_second = 1000, .slow_down = {.at = 10ms, .until = 30ms, .factor = 4}});
  CHECK(across.run(20) == 35'000'000);  // 10 before, 5 meanwhile, 5 after
  AloneState for_good({.rows_per_second = 1000, .slow_down = {.at = 1s, .factor = 0.5}});
  CHECK(for_good.run(3000) == 2'000'000'000);
}

TEST_CASE("noise has the deviation that is asked for, and is the same again") {
  constexpr int count = 20'000;
  AloneState device({.rows_per_second = 1e6, .noise = 0.03, .seed = 5});
  AloneState again({.rows_per_second = 1e6, .noise = 0.03, .seed = 5});
  AloneState other_seed({.rows_per_second = 1e6, .noise = 0.03, .seed = 6});
  AloneState other_place({.rows_per_second = 1e6, .noise = 0.03, .seed = 5}, 1);
  double sum = 0;
  double squares = 0;
  Clock::Time before = 0;
  for (int i = 0; i < count; ++i) {
    const Clock::Time end = device.run(1000);
    CHECK(again.run(1000) == end);
    if (i % 1000 == 0) {
      CHECK(other_seed.run(1000) != end);
      CHECK(other_place.run(1000) != end);
    }
    const double relative = static_cast<double>(end - before) / 1e6 - 1;
    before = end;
    sum += relative;
    squares += relative * relative;
  }
  CHECK(std::abs(sum / count) < 4 * 0.03 / std::sqrt(count));
  CHECK(std::abs(std::sqrt(squares / count) / 0.03 - 1) < 4 / std::sqrt(2.0 * count));
}

TEST_CASE("great noise never makes a shard more than ten times as fast") {
  AloneState device({.rows_per_second = 1e6, .noise = 0.99, .seed = 1});
  Clock::Time before = 0;
  bool clipped = false;
  for (int i = 0; i < 1000; ++i) {
    const Clock::Time end = device.run(1000);
    CHECK(end - before >= 100'000);
    clipped = clipped || end - before == 100'000;
    before = end;
  }
  CHECK(clipped);
}

TEST_CASE("shards fail when they are told to, at their end") {
  AloneState device({.rows_per_second = 1e6, .fail_at = 2, .failures = 2});
  CHECK(device.run(10) == 10'000);
  for (const char* shard : {"shard 2", "shard 3"}) {
    try {
      device.run(10);
      FAIL("did not fail");
    } catch (const fanout::DeviceError& error) {
      CHECK(std::string(error.what()).find(shard) != std::string::npos);
      CHECK(std::string(error.what()).find("sim:1000000") != std::string::npos);
    }
  }
  CHECK(device.run(10) == 40'000);
  AloneState lost({.fail_at = 1, .failures = SIZE_MAX});
  for (int i = 0; i < 100; ++i) CHECK_THROWS_AS(lost.run(1), fanout::DeviceError);
}
