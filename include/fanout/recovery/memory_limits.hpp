// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How many rows of a batch fit into the memory of each device at a time, for each shape of the arguments that was too
/// large once. Thread-safe.
/// `Count` is always std::uint32_t. As a template, this costs nothing to compile in a file that calls no model.
template <class Count = std::uint32_t>
class MemoryLimits {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  /// From now on a device gets at most so many rows at a time. Returns false if that was known already, and for no
  /// rows. Throws std::bad_alloc.
  bool note(std::uint64_t shape, std::size_t device, std::size_t rows) {
    if (rows == 0) return false;
    const ForkSafeLock changing(mutex_);
    for (Limit& known : limits_) {
      if (!known.is_for(shape, device)) continue;
      if (rows >= known.rows) return false;
      known.rows = rows;
      return true;
    }
    limits_.push_back({.shape = shape, .device = device, .rows = rows});
    exist_.store(true, MemoryOrder::relaxed);
    return true;
  }

  /// Forgets the limits of a device: all of them, or that for one shape.
  void forget(std::size_t device) noexcept {
    const ForkSafeLock changing(mutex_);
    std::erase_if(limits_, [device](const Limit& known) { return known.device == device; });
  }
  void forget(std::uint64_t shape, std::size_t device) noexcept {
    const ForkSafeLock changing(mutex_);
    std::erase_if(limits_, [shape, device](const Limit& known) { return known.is_for(shape, device); });
  }

  /// True if anything has been learnt.
  bool exist() const noexcept { return exist_.load(MemoryOrder::relaxed); }

  /// How many rows a device gets at a time; `none` if nothing is known.
  std::size_t most(std::uint64_t shape, std::size_t device) const noexcept {
    const ForkSafeLock reading(mutex_);
    for (const Limit& known : limits_) {
      if (known.is_for(shape, device)) return known.rows;
    }
    return none;
  }
  /// The same for all shapes: the least.
  std::size_t most(std::size_t device) const noexcept {
    const ForkSafeLock reading(mutex_);
    std::size_t least = none;
    for (const Limit& known : limits_) {
      if (known.device == device && known.rows < least) least = known.rows;
    }
    return least;
  }

  /// The plan within the limits. A device keeps its rows. A shard that does not fit is cut into equal parts, as few as
  /// possible. The shards of a limited device run in turns.
  Plan applied_to(const Plan& plan, std::uint64_t shape) const {
    Plan limited;
    bool is_limited = false;
    for (const Shard& shard : plan) {
      const std::size_t most_rows = most(shape, shard.device);
      const std::size_t rows = shard.rows.size();
      const std::size_t parts = rows > most_rows ? (rows - 1) / most_rows + 1 : 1;
      is_limited = is_limited || most_rows != none;
      const EvenParts cut(rows, parts);
      for (std::size_t i = 0; i < parts; ++i) {
        const std::size_t first = shard.rows.first;
        limited.add({.rows = {first + cut[i].first, first + cut[i].last}, .device = shard.device});
      }
    }
    if (plan.is_dealt()) limited.deal();
    if (is_limited && (plan.is_dealt() || has_two_for_one(limited))) limited.run_in_turns();
    return limited;
  }

 private:
  struct Limit {
    std::uint64_t shape = 0;
    std::size_t device = 0;
    std::size_t rows = 0;

    bool is_for(std::uint64_t other_shape, std::size_t other_device) const noexcept {
      return shape == other_shape && device == other_device;
    }
  };

  /// True if a device has more than one shard.
  static bool has_two_for_one(const Plan& plan) {
    for (const Shard& one : plan) {
      for (const Shard& other : plan) {
        if (&one != &other && one.device == other.device) return true;
      }
    }
    return false;
  }

  std::vector<Limit> limits_;
  Atomic<bool> exist_{false};
  mutable ForkSafeMutex mutex_;
};

}}}  // namespace fanout::v0::detail
