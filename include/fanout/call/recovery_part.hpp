// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <fanout/base/error.hpp>
#include <fanout/base/owned.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_parts.hpp>
#include <fanout/call/deal_part.hpp>
#include <fanout/dispatch/typed_call.hpp>
#include <fanout/recovery/recovery.hpp>

namespace fanout { inline namespace v0 { namespace detail {

FANOUT_INLINE Owned<Recovery> make_recovery(std::size_t devices);

/// Limits the plan of a call to the rows that fit into the devices' memories. Returns the plans of the next tries.
/// `shape`: that of the call's arguments.
FANOUT_INLINE Owned<LimitedPlans> limit_plan(const CallSettings& settings, Plan& plan, std::uint64_t shape);

/// Call this when all shards have ended. Runs shards again, as the settings say. Returns false if the call must be made
/// again.
FANOUT_INLINE bool recover(CallFrame& frame, const TypedCall& call);

/// Why a shard that failed with its device did not run again, though the settings of the call ask for it. Empty if they
/// do not, or if it did run again.
[[gnu::cold]] FANOUT_INLINE std::string why_not_again(const CallFrame& frame, const TypedCall& call, std::size_t i);

/// Throws the same error, with the reason why the call is not made again though its results could not be gathered.
[[noreturn, gnu::cold]] FANOUT_INLINE void say_why_not_shrunk(const OutOfMemory& error);

inline constexpr RecoveryPart RecoveryPart::table{.make = &make_recovery,
                                                  .without_left_out = &Recovery::without_left_out,
                                                  .within_limits = &Recovery::within_limits,
                                                  .readmit = &Recovery::readmit,
                                                  .limit = &limit_plan,
                                                  .recover = &detail::recover,
                                                  .why_not_again = &detail::why_not_again,
                                                  .say_why_not_shrunk = &detail::say_why_not_shrunk,
                                                  .deals = &DealPart::table};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/recovery_part.ipp>
#endif
