// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/clock.hpp>

// Replaces the library's header: one tick is one nanosecond of the modelled machine.

namespace fanout { inline namespace v0 { namespace detail {

struct Ticks {
  static constexpr std::int64_t forever = INT64_MAX;
  static std::int64_t now() noexcept { return Clock::now(); }
  static std::int64_t in(std::int64_t nanoseconds) noexcept { return nanoseconds; }
  static std::int64_t nanoseconds(std::int64_t ticks) noexcept { return ticks; }
};

}}}  // namespace fanout::v0::detail
