// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/separate_compilation.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_parts.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/dispatch/fork_join.hpp>
#include <fanout/dispatch/typed_call.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// See CallFrame::deal().
FANOUT_INLINE void begin_deal(CallFrame& frame, ForkJoin& shards, const DeviceTable& devices, const TypedCall& call);
/// Call this when all shards have ended.
FANOUT_INLINE void end_deal(CallFrame& frame);

inline constexpr DealPart DealPart::table{.begin = &begin_deal, .end = &end_deal};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/deal_part.ipp>
#endif
