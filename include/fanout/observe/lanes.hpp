// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>

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
  FANOUT_INLINE explicit Lanes(std::vector<LaneSlice>& slices);

  /// Sorted by device.
  const std::vector<Lane>& all() const noexcept { return all_; }

 private:
  struct Open {
    std::size_t lane;
    std::vector<const LaneSlice*> around;
  };

  FANOUT_INLINE void place(LaneSlice& slice, std::vector<Open>& open);

  std::vector<Lane> all_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/observe/lanes.ipp>
#endif
