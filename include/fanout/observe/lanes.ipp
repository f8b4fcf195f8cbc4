// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/observe/lanes.hpp>

#include <algorithm>

namespace fanout { inline namespace v0 { namespace detail {

Lanes::Lanes(std::vector<LaneSlice>& slices) {
  std::vector<std::size_t> order(slices.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&slices](std::size_t i, std::size_t k) {
    const LaneSlice& a = slices[i];
    const LaneSlice& b = slices[k];
    if (!(a.device == b.device)) return a.device < b.device;
    if (a.began != b.began) return a.began < b.began;
    return a.ended != b.ended ? a.ended > b.ended : i < k;
  });
  std::vector<Open> open;  // of the device
  const LaneSlice* before = nullptr;
  for (const std::size_t i : order) {
    if (before != nullptr && !(before->device == slices[i].device)) open.clear();
    before = &slices[i];
    place(slices[i], open);
  }
}

void Lanes::place(LaneSlice& slice, std::vector<Open>& open) {
  for (Open& each : open) {
    while (!each.around.empty() && each.around.back()->ended <= slice.began) each.around.pop_back();
    if (!each.around.empty() &&
        (each.around.back()->ended < slice.ended || each.around.back()->thread != slice.thread)) {
      continue;
    }
    slice.lane = each.lane;
    each.around.push_back(&slice);
    return;
  }
  slice.lane = all_.size();
  all_.push_back({.device = slice.device, .index = open.size()});
  open.push_back({.lane = slice.lane, .around = {&slice}});
}

}}}  // namespace fanout::v0::detail
