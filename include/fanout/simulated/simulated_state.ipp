// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/simulated/simulated_state.hpp>

#include <string>

#include <fanout/base/error.hpp>
#include <fanout/simulated/noise.hpp>

namespace fanout { inline namespace v0 { namespace detail {

Clock::Time SimulatedState::run_shard(std::size_t rows, Clock::Time earliest) {
  const std::uint64_t shard = shards_.fetch_add(1, MemoryOrder::relaxed) + 1;
  const Clock::Time work =
      with_noise(later_by(options_.launch.nanoseconds(), time_for(rows, options_.rows_per_second)), shard);
  const Clock::Time end = busy_.work(earliest, [&](Clock::Time begin) { return end_of(begin, work); });
  if (options_.fail_at != 0 && shard >= options_.fail_at && shard - options_.fail_at < options_.failures) {
    throw DeviceError(explain({.what = "simulated failure of " + to_string(id()),
                               .where = "shard " + std::to_string(shard) + " that it ran"}));
  }
  return end;
}

void SimulatedState::claim(std::size_t bytes) {
  std::size_t used = used_.load(MemoryOrder::relaxed);
  do {
    if (bytes > options_.memory - used) refuse_bytes_of(bytes, used);
  } while (!used_.compare_exchange_weak(used, used + bytes, MemoryOrder::relaxed));
}

Clock::Time SimulatedState::with_noise(Clock::Time work, std::uint64_t shard) const noexcept {
  if (options_.noise == 0) return work;
  double change = options_.noise * noise_of(options_.seed, position_, shard);
  if (change < -0.9) change = -0.9;
  const double time = static_cast<double>(work);
  return change < 0 ? work - rounded(time * -change) : later_by(work, rounded(time * change));
}

Clock::Time SimulatedState::end_of(Clock::Time begin, Clock::Time work) const noexcept {
  const SimulatedDeviceOptions::SlowDown& slow = options_.slow_down;
  const Clock::Time at = slow.at.nanoseconds();
  const Clock::Time until = slow.until.nanoseconds();
  if (begin < at) {
    const Clock::Time before = at - begin;
    if (work <= before) return begin + work;
    work -= before;
    begin = at;
  }
  if (begin < until) {
    const Clock::Time slowed = rounded(static_cast<double>(work) * slow.factor);
    const Clock::Time during = until - begin;
    if (slowed <= during) return begin + slowed;
    work -= rounded(static_cast<double>(during) / slow.factor);
    begin = until;
  }
  return later_by(begin, work < 0 ? 0 : work);
}

void SimulatedState::refuse_bytes_of(std::size_t bytes, std::size_t used) const {
  throw OutOfMemory(explain({.what = "out of memory of " + to_string(id()),
                             .expected = "at most " + std::to_string(options_.memory - used) + " bytes, which are free",
                             .found = std::to_string(bytes),
                             .advice = "use smaller batches, or a larger SimulatedDeviceOptions::memory"}));
}

}}}  // namespace fanout::v0::detail
