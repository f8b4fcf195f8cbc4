// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include <fanout/device/completion.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

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

/// What one shard leaves besides its value: its exception, the memory that it claimed, and pending device work.
struct ShardRemains {
  static constexpr std::size_t as_planned = ~std::size_t{0};

  // moved_to is read only in calls that note the ends of shards.
  // NOLINTNEXTLINE(*-member-init,modernize-use-equals-default)
  ShardRemains() noexcept {}

  Scratch scratch;
  backend::Completion completion;  // declared after scratch, so destroyed (waited for) before it
  std::exception_ptr failure;
  std::size_t moved_to;  // the device that runs it, or as_planned; set by runs_as_planned()
  bool failed_in_forward = false;
  bool released = false;  // it failed only because it waited for a shard that had left
  bool told_late = false;
  bool results_do_not_fit = false;  // into the memory that gathers them, which is not the device's
  Lateness lateness;

  void runs_as_planned() noexcept { moved_to = as_planned; }

  /// True if it has thrown an E.
  template <class E>
  bool failed_with() const noexcept {
    if (failure == nullptr) return false;
    try {
      std::rethrow_exception(failure);
    } catch (const E&) {
      return true;
    } catch (...) {
      return false;
    }
  }
};

}}}  // namespace fanout::v0::detail
