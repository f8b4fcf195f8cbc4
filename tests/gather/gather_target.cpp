// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <fanout/gather/gather_target.hpp>

namespace {
constexpr fanout::DeviceId place_devices[] = {{.kind = "cuda", .index = 3}, {.kind = "host", .index = 0}};
}  // namespace

TEST_CASE("a shard is described by its number, its device and its rows") {
  const fanout::Plan plan{{.rows = {0, 15}, .device = 1}, {.rows = {15, 30}, .device = 0}};
  const fanout::GatherTarget place{plan, place_devices, {}};
  CHECK(place.describe(0) == "shard 0 on host:0, rows [0, 15)");
  CHECK(place.describe(1) == "shard 1 on cuda:3, rows [15, 30)");
}

TEST_CASE("a shard's share is that of its rows, and equal without rows") {
  const fanout::Plan plan{{.rows = {0, 3}, .device = 0}, {.rows = {3, 3}, .device = 1}, {.rows = {3, 4}, .device = 0}};
  const fanout::GatherTarget place{plan, place_devices, {}};
  CHECK(place.share(0) == 0.75);
  CHECK(place.share(1) == 0);
  CHECK(place.share(2) == 0.25);
  const fanout::Plan empty{{.rows = {0, 0}, .device = 0}, {.rows = {0, 0}, .device = 1}};
  CHECK(fanout::GatherTarget{empty, place_devices, {}}.share(1) == 0.5);
}

TEST_CASE("a shard without rows counts only where none has rows") {
  const fanout::Plan plan{{.rows = {0, 0}, .device = 0}, {.rows = {0, 3}, .device = 1}, {.rows = {3, 3}, .device = 0}};
  const fanout::GatherTarget place{plan, place_devices, {}};
  CHECK_FALSE(place.counts(0));
  CHECK(place.counts(1));
  CHECK_FALSE(place.counts(2));
  CHECK(place.first() == 1);
  const fanout::Plan empty{{.rows = {0, 0}, .device = 0}, {.rows = {0, 0}, .device = 1}};
  const fanout::GatherTarget nowhere{empty, place_devices, {}};
  CHECK(nowhere.counts(1));
  CHECK(nowhere.first() == 0);
}
