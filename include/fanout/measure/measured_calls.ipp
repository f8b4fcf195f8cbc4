// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/measure/measured_calls.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace detail {

void MeasuredCalls::close() noexcept {
  const ForkSafeLock closing(mutex_);
  is_closed_ = true;
}

Plan MeasuredCalls::plan(std::size_t rows, std::size_t devices) const {
  const ForkSafeLock reading(mutex_);
  return split_(rows, devices);
}

void MeasuredCalls::ended(const CallTimes& call) noexcept {
  const ForkSafeLock adding(mutex_);
  if (is_closed_) return;
  try {
    totals_.add(call);
    if (!call.failed) split_.observe(call);
  } catch (...) {  // without memory, this call is not counted
  }
}

void MeasuredCalls::shard_ended(const Progress& progress) noexcept {
  if (!progress_) return;
  try {
    progress_(progress);
  } catch (...) {  // an exception of the function must not break the call
  }
}

CallTotals MeasuredCalls::totals() const {
  const ForkSafeLock reading(mutex_);
  return totals_;
}

}}}  // namespace fanout::v0::detail
