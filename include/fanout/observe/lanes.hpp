// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/device_id.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// One shard on the timeline.
struct LaneSlice {
  DeviceId device;
  std::uint32_t thread = 0;  ///< that ran it
  std::int64_t began = 0;
  std::int64_t ended = 0;
  std::size_t lane = 0;  ///< index of Lanes::all()
};

/// A lane of a device. The first of each device has index 0.
struct Lane {
  DeviceId device;
  std::size_t index = 0;
};

/// The lanes of the devices. A viewer of the timeline shows slices of one lane that overlap only if one encloses the
/// other. So a slice gets the first lane of its device in which all that it overlaps enclose it, and ran on its thread:
/// a nested call. Most devices have one lane: others run shards that their callers took back.
class Lanes {
 public:
  /// Sets the lane of each slice.
  explicit Lanes(std::vector<LaneSlice>& slices) {
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

  /// Sorted by device.
  const std::vector<Lane>& all() const noexcept { return all_; }

 private:
  struct Open {
    std::size_t lane;
    std::vector<const LaneSlice*> around;
  };

  void place(LaneSlice& slice, std::vector<Open>& open) {
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

  std::vector<Lane> all_;
};

}}}  // namespace fanout::v0::detail
