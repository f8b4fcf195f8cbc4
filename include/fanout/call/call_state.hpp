// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/any_function.hpp>
#include <fanout/base/cache_line.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/call/call_parts.hpp>
#include <fanout/call/call_rendezvous.hpp>
#include <fanout/call/call_request.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/batch_place.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/waiting/call_statistics.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The settings that all calls of a model share.
struct CallSettings {
  backend::Memory target = {};  ///< the memory in which results are gathered
  int axis = 0;                 ///< on which results are concatenated, unless they name their own
  std::uint64_t seed = 0;       ///< of the random numbers
  bool rethrow_single = false;  ///< if one replica fails, its exception is thrown unchanged

  const DealPart* deals = nullptr;          ///< deals the shards if the plan says so; null: they run as planned
  const DeadlinePart* deadlines = nullptr;  ///< null: there is no deadline
  Duration deadline = Duration::forever();  ///< how long a call may take
  const AnyFunction<void(const LateShard&)>* late_sink = nullptr;  ///< called for late shards; borrowed
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

inline Clock::Time earlier(Clock::Time a, Clock::Time b) noexcept { return a < b ? a : b; }

/// The state of one call, which all its shards share.
struct CallState {
  /// `shards_may_meet`: see CallRendezvous. `of_set`: the devices of the set. Borrows all.
  CallState(const Plan& by, const CallSettings& with, const CallRequest& asked, const DeviceId* of_set,
            bool shards_may_meet)
      : plan(by),
        settings(with),
        request(asked),
        target(asked.memory != nullptr ? *asked.memory : with.target),
        devices(of_set),
        outputs(target),
        rendezvous(by.size(), shards_may_meet) {
    outputs.write_to(asked.targets, asked.target_count);
  }

  /// Call this once, on the thread that makes the call, before shards run. The deadline counts from now on. `measured`:
  /// null if the call is not.
  void begin(std::uint32_t number_of_call, CallClock* measured) noexcept {
    number = number_of_call;
    clock = measured;
    if (!(settings.deadline == Duration::forever())) deadline = Clock::after(settings.deadline);
    stop_at = earlier(deadline, stop_time(current_call()));
  }

  /// Forgets the shards that have run. Call this if the call is made again, after its plan was changed.
  FANOUT_INLINE void again();

  /// True from the deadline on: that of this call, or of a call around it. Reads the clock only if there is a deadline.
  bool stop_requested() const noexcept {
    if (stop_at == Clock::never) return false;
    if (stopped_.load(MemoryOrder::relaxed)) return true;
    if (Clock::now() < stop_at) return false;
    stopped_.store(true, MemoryOrder::relaxed);
    return true;
  }

  /// True if a shard ends with its device's work: it may be late, it is measured, or the device takes another one then.
  bool waits_for_devices() const noexcept { return stop_at != Clock::never || clock != nullptr || !plan.is_ordinary(); }

  const Plan& plan;
  const CallSettings& settings;
  const CallRequest& request;
  const backend::Memory& target;  ///< the memory in which results are gathered
  const DeviceId* const devices;
  const BatchPlace* place = &alone_in_batch;        ///< of the shards, if several processes make the call
  backend::ProcessRendezvous* processes = nullptr;  ///< of the shards of several processes, if they may meet
  CallClock* clock = nullptr;                       ///< null if the call is not measured
  Clock::Time deadline = Clock::never;              ///< after which a shard is late
  Clock::Time stop_at = Clock::never;               ///< the same, or an earlier deadline of a call around this one
  std::uint32_t number = 0;                         ///< as a key of the random numbers
  alignas(cache_line) OutputBuffers outputs;        // so that a shard finds the first one in one cache line
  CallRendezvous rendezvous;

 private:
  mutable Atomic<bool> stopped_{false};
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/call_state.ipp>
#endif
