// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/dispatch/copy_team.hpp>
#include <fanout/memory/copy_bytes.hpp>
#include <fanout/memory/copy_rows.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// From this many bytes on, a copy is shared. A smaller one ends before other threads could help.
inline constexpr std::size_t shared_from = std::size_t{1} << 18;

/// Makes a copy in host memory. The team shares a large copy: each device writes one contiguous part of the result. If
/// shards are concatenated by rows, this is likely the part that the device made.
FANOUT_INLINE void copy_shared(const RowsCopy& copy, const CopyTeam* team);

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/dispatch/shared_copy.ipp>
#endif
