// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/measure/call_meter.hpp>

#include <fanout/measure/call_clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void CallMeter::result_is_asked_for() const noexcept {
  if (clock_ != nullptr) clock_->tell(&ClockPart::result_is_asked_for);
}

void CallMeter::make_clock(const MeasuredStart& start) noexcept {
  clock_ = start.observer != nullptr ? start.observer->make_clock(start) : process_observer.make_clock(start);
}

void CallMeter::end() noexcept { clock_->tell(&ClockPart::end); }

}}}  // namespace fanout::v0::detail
