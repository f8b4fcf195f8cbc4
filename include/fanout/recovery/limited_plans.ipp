// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/recovery/limited_plans.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

void LimitedPlans::begin(const Recovery& recovery, const Plan& planned, std::uint64_t shape) {
  kept_ = new Kept{.recovery = recovery, .planned = planned, .shape = shape};
}

Plan LimitedPlans::next() const {
  const Recovery& known = kept_->recovery;
  return known.limits().applied_to(known.without_left_out(kept_->planned), kept_->shape);
}

void LimitedPlans::release() noexcept { delete kept_; }

}}}  // namespace fanout::v0::detail
