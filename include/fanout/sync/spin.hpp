// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/futex.hpp>
#include <fanout/sync/ticks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Calls `done()` until it returns true, for about so many ticks; for 0 ticks, once. Returns its last result. Does not
/// read the counter in the first half microsecond.
template <class Done>
bool spin(std::int64_t ticks, const Done& done) noexcept {
  constexpr std::uint32_t turns_between_looks = 32;
  std::int64_t begin = 0;
  for (std::uint32_t turn = 1; ticks > 0; ++turn) {
    if (done()) return true;
    pause();
    if (turn % turns_between_looks != 0 || ticks == Ticks::forever) continue;
    const std::int64_t now = Ticks::now();
    if (begin == 0) {
      begin = now;
    } else if (now - begin > ticks) {
      break;
    }
  }
  return done();
}

}}}  // namespace fanout::v0::detail
