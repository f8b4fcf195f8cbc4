// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/recovery/memory_limits.hpp>

#include <cstddef>
#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

/// True if a device has more than one shard.
inline bool has_two_for_one(const Plan& plan) {
  for (const Shard& one : plan) {
    for (const Shard& other : plan) {
      if (&one != &other && one.device == other.device) return true;
    }
  }
  return false;
}

bool MemoryLimits::note(std::uint64_t shape, std::size_t device, std::size_t rows) {
  if (rows == 0) return false;
  const ForkSafeLock changing(mutex_);
  for (Limit& known : limits_) {
    if (!known.is_for(shape, device)) continue;
    if (rows >= known.rows) return false;
    known.rows = rows;
    return true;
  }
  limits_.push_back({.shape = shape, .device = device, .rows = rows});
  return true;
}

void MemoryLimits::forget(std::size_t device) noexcept {
  const ForkSafeLock changing(mutex_);
  std::erase_if(limits_, [device](const Limit& known) { return known.device == device; });
}

void MemoryLimits::forget(std::uint64_t shape, std::size_t device) noexcept {
  const ForkSafeLock changing(mutex_);
  std::erase_if(limits_, [shape, device](const Limit& known) { return known.is_for(shape, device); });
}

std::size_t MemoryLimits::most(std::uint64_t shape, std::size_t device) const noexcept {
  const ForkSafeLock reading(mutex_);
  for (const Limit& known : limits_) {
    if (known.is_for(shape, device)) return known.rows;
  }
  return none;
}

std::size_t MemoryLimits::most(std::size_t device) const noexcept {
  const ForkSafeLock reading(mutex_);
  std::size_t least = none;
  for (const Limit& known : limits_) {
    if (known.device == device && known.rows < least) least = known.rows;
  }
  return least;
}

Plan MemoryLimits::applied_to(const Plan& plan, std::uint64_t shape) const {
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

}}}  // namespace fanout::v0::detail
