// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/memory/copy_bytes.hpp>
#include <fanout/memory/copy_rows.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// From this many bytes on, a copy is shared. A smaller one ends before other threads could help.
inline constexpr std::size_t shared_from = std::size_t{1} << 18;

/// Makes a copy in host memory. The threads of the devices share a large one, for copies that gathering cannot avoid:
/// each writes one contiguous part of the result. If shards are concatenated by rows, this is likely the part that the
/// device made. Null `team`: this thread copies alone. May be called from any thread, also inside a call.
FANOUT_INLINE void copy_shared(const RowsCopy& copy, const DeviceTable* team);

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/dispatch/shared_copy.ipp>
#endif
