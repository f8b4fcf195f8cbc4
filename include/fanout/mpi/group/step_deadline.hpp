// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <fanout/base/duration.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Until when a step waits for other ranks.
struct StepDeadline {
  Clock::Time at = Clock::never;
  Duration patience = Duration::forever();

  bool exists() const noexcept { return !(patience == Duration::forever()); }
};

}}}  // namespace fanout::v0::detail
