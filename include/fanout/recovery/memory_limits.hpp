// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How many rows of a batch fit into the memory of each device, for each shape of the arguments that was too large once.
/// Thread-safe.
/// `Count` is always std::uint32_t. As a template, this costs nothing to compile in a file that calls no model.
template <class Count = std::uint32_t>
class MemoryLimits {
 public:
  /// A device ran out of memory with so many rows. From now on it gets half of them at most. Returns false for a single
  /// row, of which nothing is learnt. Throws std::bad_alloc.
  bool note(std::uint64_t shape, std::size_t device, std::size_t rows) {
    if (rows < 2) return false;
    const ForkSafeLock changing(mutex_);
    if (Limit* const known = const_cast<Limit*>(find(shape, device))) {
      if (rows / 2 < known->rows) known->rows = rows / 2;
    } else {
      limits_.push_back({.shape = shape, .device = device, .rows = rows / 2});
    }
    exist_.store(true, MemoryOrder::relaxed);
    return true;
  }

  /// True if anything has been learnt.
  bool exist() const noexcept { return exist_.load(MemoryOrder::relaxed); }

  /// The plan within the limits: a device keeps as many of its rows as fit. The others share the rest, in proportion to
  /// their own. Throws OutOfMemory if all devices together cannot hold the rows.
  Plan applied_to(const Plan& plan, std::uint64_t shape, std::size_t devices) const {
    std::vector<Share> shares(devices);
    for (const Shard& shard : plan) shares[shard.device].rows += shard.rows.size();
    {
      const ForkSafeLock reading(mutex_);
      for (std::size_t i = 0; i < devices; ++i) {
        if (const Limit* const limit = find(shape, i)) shares[i].most = limit->rows;
      }
    }
    if (!share_out(shares)) return plan;
    Plan limited;
    std::size_t next = 0;
    for (std::size_t i = 0; i < devices; ++i) {
      if (shares[i].rows == 0) continue;
      limited.add({.rows = {next, next + shares[i].rows}, .device = i});
      next += shares[i].rows;
    }
    return limited;
  }

 private:
  struct Limit {
    std::uint64_t shape = 0;
    std::size_t device = 0;
    std::size_t rows = 0;
  };
  struct Share {
    std::size_t rows = 0;
    std::size_t most = ~std::size_t{0};
  };

  const Limit* find(std::uint64_t shape, std::size_t device) const noexcept {
    for (const Limit& limit : limits_) {
      if (limit.shape == shape && limit.device == device) return &limit;
    }
    return nullptr;
  }

  /// Returns false if all shares are within their limits already.
  static bool share_out(std::vector<Share>& shares) {
    std::size_t rest = 0;
    for (Share& share : shares) {
      if (share.rows <= share.most) continue;
      rest += share.rows - share.most;
      share.rows = share.most;
    }
    if (rest == 0) return false;
    while (rest > 0) {
      std::size_t own = 0;   // rows of the devices that have room
      std::size_t room = 0;  // how many these are
      for (const Share& share : shares) {
        if (share.rows == share.most) continue;
        own += share.rows;
        ++room;
      }
      if (room == 0) {
        throw OutOfMemory(explain({.what = "the batch does not fit into the memory of all devices together",
                                   .found = std::to_string(rest) + " rows too many",
                                   .advice = "call the model for parts() of the batch"}));
      }
      const std::size_t sharing = rest;
      for (Share& share : shares) {
        if (share.rows == share.most || rest == 0) continue;
        const double part = own == 0 ? 1.0 / static_cast<double>(room)
                                     : static_cast<double>(share.rows) / static_cast<double>(own);
        auto more = static_cast<std::size_t>(part * static_cast<double>(sharing) + (1 - 1e-9));  // rounded up
        if (more > rest) more = rest;
        if (more > share.most - share.rows) more = share.most - share.rows;
        share.rows += more;
        rest -= more;
      }
    }
    return true;
  }

  std::vector<Limit> limits_;
  Atomic<bool> exist_{false};
  mutable ForkSafeMutex mutex_;
};

}}}  // namespace fanout::v0::detail
