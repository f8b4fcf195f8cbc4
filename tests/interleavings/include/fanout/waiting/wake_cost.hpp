// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

// Replaces the library's header: no decision depends on the wake-up latency here.

namespace fanout { inline namespace v0 { namespace detail {

struct WakeCost {
  void note(std::int64_t) noexcept {}
};
inline WakeCost wake_cost;

}}}  // namespace fanout::v0::detail
