// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

/// What a rank tells all others in one exchange.
struct RankWords {
  static constexpr std::uint64_t has_failed = 1;
  static constexpr std::uint64_t was_late = 2;      ///< it failed with a Timeout, since shards of its own were late
  static constexpr std::uint64_t kept_waiting = 4;  ///< it failed with a Timeout, since other ranks were late

  std::uint64_t failed = 0;
  std::uint64_t hash = 0;  ///< of what it calls
  std::uint64_t rows = 0;
  std::uint64_t shards = 0;
  std::uint64_t random_call = 0;  ///< see RankedStep
};

}}}  // namespace fanout::v0::detail
