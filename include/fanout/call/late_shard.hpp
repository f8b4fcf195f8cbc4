// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/device_id.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

/// A shard that had not ended at the deadline of its call: its position in the plan, its device, and its rows in the
/// whole batch.
struct LateShard {
  std::size_t shard = 0;
  DeviceId device{.kind = "host", .index = 0};
  RowRange rows;

  friend bool operator==(const LateShard&, const LateShard&) = default;
};

namespace detail {

/// Records if a shard is late. Both the shard at its end and the thread that waits at the deadline may decide it. The
/// first decision is final.
class Lateness {
 public:
  void end(bool in_time) noexcept { settle(in_time ? in_time_ : late_); }
  /// Called at or after the deadline. Returns true if the shard is late.
  bool look() noexcept {
    settle(late_);
    return is_late();
  }
  bool is_late() const noexcept { return state_.load(MemoryOrder::acquire) == late_; }

 private:
  static constexpr std::uint32_t open_ = 0;
  static constexpr std::uint32_t in_time_ = 1;
  static constexpr std::uint32_t late_ = 2;

  void settle(std::uint32_t as) noexcept {
    std::uint32_t unsettled = open_;
    state_.compare_exchange_strong(unsettled, as, MemoryOrder::acq_rel);
  }

  Atomic<std::uint32_t> state_{open_};
};

}  // namespace detail
}}  // namespace fanout::v0
