// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/dispatch/copy_team.hpp>
#include <fanout/memory/copy_bytes.hpp>
#include <fanout/memory/copy_rows.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// From this many bytes on, a copy is shared. A smaller one ends before other threads could help.
inline constexpr std::size_t shared_from = std::size_t{1} << 18;

/// Makes a copy in host memory. The team shares a large copy: each device writes one contiguous part of the result. If
/// shards are concatenated by rows, this is likely the part that the device made.
inline void copy_shared(const RowsCopy& copy, const CopyTeam* team) {
  const std::size_t bytes = copy.bytes();
  const std::size_t most = bytes / (shared_from / 2);
  if (team == nullptr || team->size() < 2 || most < 2) return copy_rows(copy);
  const std::size_t parts = team->size() < most ? team->size() : most;
  const auto begin = [&](std::size_t i) { return i == parts ? bytes : bytes / parts * i / 4096 * 4096; };
  team->share(parts, [&](std::size_t i) noexcept { copy_part(copy, begin(i), begin(i + 1), bytes >= streamed_from); });
}

}}}  // namespace fanout::v0::detail
