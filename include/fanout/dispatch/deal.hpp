// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/device/device_clock.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/dispatch/shard_runner.hpp>
#include <fanout/dispatch/typed_call.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The blocks of a plan during one call. Each device runs the blocks that were planned for it, the first ones first,
/// one at a time. If the plan is dealt, it then takes over blocks of the device that has the most rows left. A device
/// that is slower than planned takes smaller blocks, so the call waits for one of its blocks at most. A device for
/// which no blocks were planned takes over none: it is too slow, or has failed.
///
/// `deal(i)` runs blocks on the i-th of the devices that have blocks, until none are left. It is the body of a ForkJoin
/// with one shard for each of these devices. If all devices have clocks of their own, blocks are dealt one at a time,
/// to the device with the earliest time. So the order of the threads does not matter.
///
/// In a dealt plan, a device that has failed takes no more blocks, since a broken device would fail all of them
/// quickly. If no other device takes blocks any more, it runs those that are left.
///
/// Borrows all that it is made of, also the body of the call.
class Deal {
 public:
  /// `call` runs the blocks. `body` of the call is told of late ones.
  FANOUT_INLINE Deal(const Plan& blocks, const DeviceTable& devices, const TypedCall& call, const ShardRunner& body);
  Deal(const Deal&) = delete;
  Deal& operator=(const Deal&) = delete;

  /// Lets a device run only blocks of at most so many rows, until another device has failed. Call it first.
  void limit(std::size_t device, std::size_t rows) noexcept { hands_[device].most = rows; }

  /// One shard without rows for each device that has blocks.
  const Plan& dealers() const noexcept { return dealers_; }

  FANOUT_INLINE void operator()(std::size_t dealer) const noexcept;
  void tell_late() const noexcept { body_.tell_late(); }

  /// The blocks, each with the device that ran it. Called when all have ended.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE const Plan& as_run();

 private:
  static constexpr std::size_t nobody = ~std::size_t{0};

  struct Hand {
    const DeviceClock* clock = nullptr;  // borrowed
    SmallVector<std::size_t> blocks;     // planned for it
    std::size_t taken = 0;               // how many of these, by whichever device
    std::size_t first = 0;               // those before this one are taken
    std::size_t rows = 0;                // of the others
    std::size_t given = 0;               // rows of the blocks that it has taken
    std::size_t most = nobody;           // rows that it can run at a time
    bool takes_no_more = false;

    bool is_empty() const noexcept { return taken == blocks.size(); }
  };

  /// Takes a block for a device. Returns false if none are left that it can run.
  FANOUT_INLINE bool take(std::size_t device, std::size_t& block) noexcept;

  /// True if a device that has failed leaves its blocks to others.
  FANOUT_INLINE bool fails() noexcept;
  FANOUT_INLINE bool fails_locked() noexcept;

  FANOUT_INLINE bool take_locked(std::size_t device, std::size_t& block) noexcept;

  /// A device's share of the rows that are left, by those that each device has been given up to now. A device that lags
  /// behind the plan has been given less. All of them if it has been given none.
  FANOUT_INLINE double share_of_left(std::size_t device) const noexcept;

  FANOUT_INLINE double most_for(const Hand& hand) const noexcept;

  /// The first block of a hand that nobody has taken and that has at most `rows` rows; without any, the last one.
  FANOUT_INLINE std::size_t pick(const Hand& from, double rows) const noexcept;

  FANOUT_INLINE void run_by_clocks() noexcept;

  const Plan& blocks_;
  const TypedCall call_;
  const ShardRunner body_;
  Plan dealers_;
  Plan as_run_;
  InlineArray<Hand> hands_;
  InlineArray<std::size_t> ran_on_;  // the device of each block, or nobody
  std::size_t left_;                 // rows that nobody has taken
  const bool has_clocks_;
  std::size_t taken_ = 0;    // blocks
  std::size_t working_ = 0;  // devices that take blocks
  bool has_failed_ = false;  // a device
  ForkSafeMutex mutex_;      // guards the hands, ran_on_ and what follows it
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/dispatch/deal.ipp>
#endif
