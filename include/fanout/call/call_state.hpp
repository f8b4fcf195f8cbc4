// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/any_function.hpp>
#include <fanout/base/cache_line.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/call/call_rendezvous.hpp>
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

  Duration deadline = Duration::forever();                         ///< how long a call may take
  const AnyFunction<void(const LateShard&)>* late_sink = nullptr;  ///< called for late shards; borrowed
  const backend::CollectiveTransport* collectives =
      nullptr;                                   ///< for collectives between the shards; null: through host memory
  const backend::ProcessRanks* ranks = nullptr;  ///< the processes that make the call together; null: only this one
  int retries = 0;                               ///< how many times a shard whose device fails runs again
  bool shrinks = false;  ///< the call is made again with fewer rows at a time on a device that runs out of memory
  Recovery* recovery = nullptr;     ///< what the model has learnt of its devices; null: neither happens
  CallStatistics* times = nullptr;  ///< of the calls' times; null: not measured
  const DeviceTable* team = nullptr;  ///< shares large copies of gathering; null: the caller copies alone
  bool gathers = false;             ///< the call itself gathers its results
};

/// Settings of one call.
struct CallStart {
  std::uint32_t number = 0;               ///< of this call, as a key of the random numbers
  Clock::Time deadline = Clock::never;    ///< after which a shard is late
  const OutputTarget* targets = nullptr;  ///< memory of the caller's for outputs, in the order of the output() calls
  std::size_t target_count = 0;
  const BatchPlace* place = &alone_in_batch;         ///< of the shards, if several processes make the call
  backend::ProcessRendezvous* rendezvous = nullptr;  ///< of the shards of several processes, if they may meet
  CallClock* clock = nullptr;                        ///< null if the call is not measured

  /// The settings of a call that begins now.
  static CallStart now(const CallSettings& settings) noexcept {
    CallStart start;
    if (!(settings.deadline == Duration::forever())) start.deadline = Clock::after(settings.deadline);
    return start;
  }
};

inline Clock::Time earlier(Clock::Time a, Clock::Time b) noexcept { return a < b ? a : b; }

/// The state of one call, which all its shards share.
struct CallState {
  /// For a call that this thread makes. `shards_may_meet`: see CallRendezvous. Borrows the plan and the settings.
  CallState(const Plan& by, const CallSettings& with, const CallStart& start = {}, bool shards_may_meet = false)
      : plan(by),
        settings(with),
        number(start.number),
        place(*start.place),
        deadline(start.deadline),
        stop_at(earlier(start.deadline, stop_time(current_call()))),
        clock(start.clock),
        outputs(with.target),
        rendezvous(by.size(), shards_may_meet) {
    outputs.write_to(start.targets, start.target_count);
  }
  CallState(const Plan& by, const CallSettings&& with, const CallStart& start = {}, bool = false) = delete;
  CallState(const Plan&& by, const CallSettings& with, const CallStart& start = {}, bool = false) = delete;

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
  const std::uint32_t number;
  const BatchPlace& place;
  const Clock::Time deadline;
  const Clock::Time stop_at;
  CallClock* const clock;
  alignas(cache_line) OutputBuffers outputs;  // so that a shard finds the first one in one cache line
  CallRendezvous rendezvous;

 private:
  mutable Atomic<bool> stopped_{false};
};

}}}  // namespace fanout::v0::detail
