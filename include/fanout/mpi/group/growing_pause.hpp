// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Waits between two looks at something, since ranks may have to share a core. A wait that has been short yields, a
/// longer one sleeps for an eighth of the time so far, and for 1 ms at most. So it ends late by an eighth, or 1 ms.
class GrowingPause {
 public:
  /// Does not sleep beyond `end`.
  FANOUT_INLINE void operator()(Clock::Time end) const;

 private:
  static constexpr Clock::Time yields = 200'000;     // ns; less than a sleep of a few of these would take
  static constexpr Clock::Time longest = 1'000'000;  // ns

  Clock::Time begin_ = Clock::now();
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/growing_pause.ipp>
#endif
