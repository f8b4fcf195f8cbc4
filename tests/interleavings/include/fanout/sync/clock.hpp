// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "machine.hpp"

// Replaces the library's header: the clock of the modelled machine.

namespace fanout { inline namespace v0 { namespace detail {

struct Clock {
  using Time = std::int64_t;
  static constexpr Time never = interleavings::Machine::never;
  static Time now() noexcept { return interleavings::Machine::now()->clock(); }
};

}}}  // namespace fanout::v0::detail
