// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/plan/gather_times.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/plan/call_times.hpp>
#include <fanout/plan/plan.hpp>

using fanout::CallTimes;
using fanout::Plan;
using fanout::detail::GatherTimes;

namespace {

/// Shows a call that ran with these rows on two devices, and took so many nanoseconds besides its shards.
void show(GatherTimes& times, const std::vector<std::size_t>& ran, const std::vector<std::size_t>& planned,
          std::int64_t nanoseconds, const CallTimes& like = {}) {
  const Plan plan{{.rows = {0, ran[0]}, .device = 0}, {.rows = {ran[0], ran[0] + ran[1]}, .device = 1}};
  times.observe({.plan = &plan,
                 .device_count = 2,
                 .planned = nanoseconds / 10,
                 .joined = 5'000,
                 .idle = like.idle,
                 .ended = 5'000 + like.idle + nanoseconds - nanoseconds / 10,
                 .gatherer = like.gatherer,
                 .asynchronous = like.asynchronous},
                planned);
}

}  // namespace

TEST_CASE("what gathering takes is learnt for all devices together, and for each alone") {
  GatherTimes times(2);
  CHECK(!times.together(100));
  CHECK(!times.alone(0, 100));
  show(times, {40, 60}, {40, 60}, 3'000);
  CHECK(times.together(100) == doctest::Approx(3e-6));
  CHECK(times.together(50) == doctest::Approx(1.5e-6));
  CHECK(!times.alone(0, 100));
  show(times, {0, 100}, {40, 60}, 1'000);
  CHECK(times.together(100) == doctest::Approx(3e-6));
  CHECK(times.alone(1, 100) == doctest::Approx(1e-6));
  CHECK(!times.alone(0, 100));
}

TEST_CASE("a call that did not run as planned, or whose result was dropped, says nothing") {
  GatherTimes times(2);
  show(times, {1, 99}, {40, 60}, 9'000);
  show(times, {60, 40}, {40, 60}, 9'000);
  show(times, {40, 60}, {40, 60}, 9'000, {.asynchronous = true});
  show(times, {0, 100}, {40, 60}, 9'000, {.asynchronous = true});
  CHECK(!times.together(100));
  CHECK(!times.alone(1, 100));
  show(times, {41, 59}, {40, 60}, 3'000);
  CHECK(times.together(100) == doctest::Approx(3e-6));
}

TEST_CASE("an asynchronous call tells what gathering took, without the time until its result was asked for") {
  GatherTimes times(2);
  show(times, {40, 60}, {40, 60}, 3'000, {.idle = 70'000, .gatherer = 1, .asynchronous = true});
  CHECK(times.together(100) == doctest::Approx(3e-6));
}

TEST_CASE("what was learnt holds for other plans of the same devices only") {
  GatherTimes times(2);
  show(times, {40, 60}, {40, 60}, 3'000);
  show(times, {40, 60}, {70, 30}, 9'000);
  CHECK(times.together(100) == doctest::Approx(3e-6));
  show(times, {40, 60}, {0, 100}, 9'000);
  CHECK(!times.together(100));
  show(times, {0, 100}, {0, 100}, 2'000);
  CHECK(times.together(100) == doctest::Approx(2e-6));
  CHECK(times.alone(1, 100) == doctest::Approx(2e-6));
}
