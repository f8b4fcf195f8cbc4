// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/waiting/arrival_predictor.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

void IntervalEstimate::note(std::int64_t span) noexcept {
  const std::int64_t mean = mean_.load(MemoryOrder::relaxed);
  const std::uint32_t near = near_.load(MemoryOrder::relaxed);
  const bool differs = span > 2 * mean || 2 * span < mean;
  if (differs && (near & 3U) == 0) {  // another rhythm began: older intervals do not count
    mean_.store(span, MemoryOrder::relaxed);
    deviation_.store(widest(span), MemoryOrder::relaxed);
    near_.store(0, MemoryOrder::relaxed);
    return;
  }
  const std::int64_t most = widest(mean);
  const std::int64_t off = span - mean;
  const std::int64_t far = off < 0 ? -off : off;
  mean_.store(mean + (far <= most ? off : off < 0 ? -most : most) / 4, MemoryOrder::relaxed);
  near_.store((near << 1U | (far <= most ? 1U : 0U)) & 0xffU, MemoryOrder::relaxed);
  if (far > most) return;
  const std::int64_t deviation = deviation_.load(MemoryOrder::relaxed);
  const int share = far < deviation / 4 ? 2 : 4;  // so that the estimate converges within a few intervals
  deviation_.store(deviation + (far - deviation) / share, MemoryOrder::relaxed);
}

void ArrivalPredictor::note(Clock::Time idle_since, Clock::Time now) noexcept {
  after_idle_.note(now - idle_since);
  const Clock::Time last = last_.load(MemoryOrder::relaxed);
  if (last != 0) after_last_.note(now - last);
  last_.store(now, MemoryOrder::relaxed);
}

ArrivalPredictor::Window ArrivalPredictor::next(Clock::Time idle_since) const noexcept {
  const int more = after_idle_.near() - after_last_.near();
  if (more > 0 || (more == 0 && after_idle_.deviation() <= after_last_.deviation())) {
    return around(idle_since, after_idle_);
  }
  return around(last_.load(MemoryOrder::relaxed), after_last_);
}

}}}  // namespace fanout::v0::detail
