// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include <fanout/base/owned.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/fwd.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 {

namespace backend {
class RankedValues;
}  // namespace backend

namespace detail {

// Parts of a call that an option brings: see WithPart. Each part is a table of functions. CallSettings has a pointer to
// each table. The pointer is null in a call without the part.

class CallFrame;
class DeviceTable;
class ForkJoin;
class Recovery;
class RankedSteps;
struct CallSettings;
struct LimitedPlans;
struct RankedCalls;
struct RankedCallType;
struct TypedCall;

/// For plans that are dealt, or whose shards run in turns: see deal_part.hpp.
struct DealPart {
  void (*begin)(CallFrame& frame, ForkJoin& shards, const DeviceTable& devices, const TypedCall& call);
  void (*end)(CallFrame& frame);
  static const DealPart table;
};

/// Stores the result of `outputs` for the shards that were in time, which have this plan.
using KeepResults = void(void* outputs, const Plan& in_time, Timeout& timeout);

/// For calls with a deadline: see deadline_part.hpp.
struct DeadlinePart {
  void (*tell_late)(CallFrame& frame) noexcept;
  void (*throw_if_late)(CallFrame& frame, KeepResults& keep, void* outputs);
  static const DeadlinePart table;
};

/// For calls whose shards run again, or that are made again with fewer rows at a time: see recovery_part.hpp.
struct RecoveryPart {
  Owned<Recovery> (*make)(std::size_t devices);
  Plan (Recovery::*without_left_out)(const Plan& plan) const;
  Plan (Recovery::*within_limits)(const LimitedPlans& call) const;
  void (Recovery::*readmit)(std::size_t device) noexcept;
  Owned<LimitedPlans> (*limit)(const CallSettings& settings, Plan& plan, std::uint64_t shape);
  bool (*recover)(CallFrame& frame, const TypedCall& call);
  std::string (*why_not_again)(const CallFrame& frame, const TypedCall& call, std::size_t shard);
  void (*say_why_not_shrunk)(const OutOfMemory& error);
  const DealPart* deals;  ///< shards of a device with less memory run in turns
  static const RecoveryPart table;
};

/// For calls that several processes make together: see RankedSteps.
struct RanksPart {
  void (RankedSteps::*set)(const CallSettings& settings, RankedCalls& calls, const RankedCallType& type, int steps,
                           bool meets) noexcept;
  void (RankedSteps::*begin)(CallFrame& call);
  void (RankedSteps::*wait_anew)() noexcept;
  void (RankedSteps::*join)();
  void (RankedSteps::*combine)(void (*visit)(const void*, backend::RankedValues&), const void* of);
  void (RankedSteps::*tell)();
  void (RankedSteps::*end)() noexcept;
  void (*throw_if_late)(const std::exception_ptr& failure);
  static const RanksPart table;
};

}  // namespace detail
}}  // namespace fanout::v0
