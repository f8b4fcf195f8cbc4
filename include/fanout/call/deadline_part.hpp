// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/separate_compilation.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_parts.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// See CallFrame::tell_late().
FANOUT_INLINE void tell_late_shards(CallFrame& frame) noexcept;
/// Throws Timeout if shards were late, with the results of the others.
FANOUT_INLINE void throw_late_shards(CallFrame& frame, KeepResults& keep, void* outputs);

inline constexpr DeadlinePart DeadlinePart::table{.tell_late = &tell_late_shards, .throw_if_late = &throw_late_shards};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/deadline_part.ipp>
#endif
