// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/any_function.hpp>
#include <fanout/base/cache_line.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/call/call_chain.hpp>
#include <fanout/call/call_meeting.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/waiting/call_times.hpp>

namespace fanout { inline namespace v0 {

/// What calls are made with, besides their inputs: the same for all calls of a model.
struct CallSettings {
  backend::Memory target = {};  ///< where the results are gathered
  int axis = 0;                 ///< on which arrays are concatenated that do not choose for themselves
  std::uint64_t seed = 0;       ///< of the random numbers
  bool rethrow_single = false;  ///< what a single failing replica threw is thrown as it is

  Duration deadline = Duration::forever();                                 ///< how long a call may take
  const detail::AnyFunction<void(const LateShard&)>* late_sink = nullptr;  ///< told what takes longer; borrowed
  const backend::CollectiveOperations* collectives = nullptr;  ///< how shards pass arrays; null: by the host
  detail::CallTimes* times = nullptr;                          ///< what calls take, if that is learnt
  const detail::Crew* crew = nullptr;  ///< shares copies that gathering cannot avoid; null: the caller makes them alone
};

/// What differs from call to call.
struct CallStart {
  std::uint32_t number = 0;                             ///< of the call, for the random numbers
  detail::Clock::Time deadline = detail::Clock::never;  ///< after which a shard is late
  const detail::OutputTarget* targets =
      nullptr;  ///< the caller's own memory for outputs, in the order in which shards ask
  std::size_t target_count = 0;

  /// Of a call that begins now.
  static CallStart now(const CallSettings& settings) noexcept {
    CallStart start;
    if (!(settings.deadline == Duration::forever())) start.deadline = detail::Clock::after(settings.deadline);
    return start;
  }
};

namespace detail {

inline Clock::Time earlier(Clock::Time a, Clock::Time b) noexcept { return a < b ? a : b; }

}  // namespace detail

/// What all shards of one call share.
struct CallFrame {
  /// For a call that the code makes which runs on this thread. Borrows the plan and the settings.
  CallFrame(const Plan& by, const CallSettings& with, const CallStart& start = {})
      : plan(by),
        settings(with),
        number(start.number),
        deadline(start.deadline),
        stop_at(detail::earlier(start.deadline, detail::stop_time(detail::current_link()))),
        outputs(with.target),
        meeting(by.size(), detail::shards_may_meet()) {
    outputs.write_to(start.targets, start.target_count);
  }
  CallFrame(const Plan& by, const CallSettings&& with, const CallStart& start = {}) = delete;
  CallFrame(const Plan&& by, const CallSettings& with, const CallStart& start = {}) = delete;

  /// True from the deadline on, of this call or of one that it is made from inside of. Reads the clock where there is
  /// one.
  bool stop_requested() const noexcept {
    if (stop_at == detail::Clock::never) return false;
    if (stopped_.load(detail::MemoryOrder::relaxed)) return true;
    if (detail::Clock::now() < stop_at) return false;
    stopped_.store(true, detail::MemoryOrder::relaxed);
    return true;
  }

  const Plan& plan;
  const CallSettings& settings;
  const std::uint32_t number;
  const detail::Clock::Time deadline;
  const detail::Clock::Time stop_at;
  alignas(detail::cache_line) detail::OutputBuffers outputs;  // so that a shard finds the first in one line
  detail::CallMeeting meeting;

 private:
  mutable detail::Atomic<bool> stopped_{false};
};

}}  // namespace fanout::v0
