// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/any_function.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/call/call_parts.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/waiting/call_statistics.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What all calls of a model have in common. Fixed when the model is made. Borrows all that it points to.
struct CallSettings {
  backend::Memory target = {};  ///< the memory in which results are gathered
  int axis = 0;                 ///< on which results are concatenated, unless they name their own
  std::uint64_t seed = 0;       ///< of the random numbers
  bool rethrow_single = false;  ///< if one replica fails, its exception is thrown unchanged

  const DealPart* deals = nullptr;          ///< deals the shards if the plan says so; null: they run as planned
  const DeadlinePart* deadlines = nullptr;  ///< null: there is no deadline
  Duration deadline = Duration::forever();  ///< how long a call may take
  const AnyFunction<void(const LateShard&)>* late_sink = nullptr;  ///< called for late shards
  const backend::CollectiveTransport* collectives =
      nullptr;                                   ///< for collectives between the shards; null: through host memory
  const RanksPart* ranked = nullptr;             ///< null only if `ranks` is
  const backend::ProcessRanks* ranks = nullptr;  ///< the processes that make the call together; null: only this one
  const RecoveryPart* recovers = nullptr;        ///< null: no shards run again, and the call is not made again
  int retries = 0;                               ///< how many times a shard whose device fails runs again
  bool shrinks = false;  ///< the call is made again with fewer rows at a time on a device that runs out of memory
  Recovery* recovery = nullptr;       ///< what the model has learnt of its devices; null: neither happens
  CallStatistics* times = nullptr;    ///< of the calls' times; null: not measured
  const DeviceTable* team = nullptr;  ///< shares large copies of gathering; null: the caller copies alone
  bool gathers = false;               ///< the call itself gathers its results

  /// The plan without the devices that are left out by now. Call this only if there is a `recovery`.
  Plan without_left_out(const Plan& by) const { return (recovery->*recovers->without_left_out)(by); }
  /// The plan of a call, within the limits that are known by now. Call this only if there is a `recovery`.
  Plan within(const LimitedPlans& call) const { return (recovery->*recovers->within_limits)(call); }
};

}}}  // namespace fanout::v0::detail
