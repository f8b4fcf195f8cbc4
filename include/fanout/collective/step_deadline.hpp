// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/duration.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// How long a step waits for other processes. All processes have a deadline, or none has.
struct StepDeadline {
  detail::Clock::Time at = detail::Clock::never;
  Duration patience = Duration::forever();  ///< Options::deadline, for errors

  bool exists() const noexcept { return !(patience == Duration::forever()); }
};

}}}  // namespace fanout::v0::backend
