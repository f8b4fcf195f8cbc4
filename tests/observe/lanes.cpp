// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <fanout/observe/lanes.hpp>

namespace {

/// The lane of each slice, as its index on the device.
std::vector<std::size_t> lanes_of(std::vector<fanout::detail::LaneSlice> slices) {
  const fanout::detail::Lanes lanes(slices);
  std::vector<std::size_t> indices;
  for (const auto& slice : slices) indices.push_back(lanes.all()[slice.lane].index);
  return indices;
}

}  // namespace

TEST_CASE("a slice gets the first lane of its device where it overlaps only what encloses it on its thread") {
  using Indices = std::vector<std::size_t>;
  const fanout::DeviceId host{.kind = "host", .index = 0};
  const fanout::DeviceId other{.kind = "host", .index = 1};
  CHECK(lanes_of({{host, 1, 0, 10}, {host, 1, 10, 20}}) == Indices{0, 0});
  CHECK(lanes_of({{host, 1, 0, 10}, {host, 1, 2, 8}, {host, 2, 2, 8}}) == Indices{0, 0, 1});
  CHECK(lanes_of({{host, 1, 0, 10}, {host, 1, 5, 15}}) == Indices{0, 1});
  // The third one ends before the fourth begins, which finds the second lane free, not the first.
  CHECK(lanes_of({{host, 1, 0, 100}, {host, 2, 1, 5}, {host, 3, 2, 50}, {host, 2, 6, 9}}) == Indices{0, 1, 2, 1});
  CHECK(lanes_of({{host, 1, 0, 10}, {other, 2, 0, 10}}) == Indices{0, 0});
}
