// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

// Replaces the library's header: no decision depends on the wake-up latency here.

namespace fanout { inline namespace v0 { namespace detail {

struct WakeLatency {
  void note(std::int64_t) noexcept {}
};
inline WakeLatency wake_latency;

}}}  // namespace fanout::v0::detail
