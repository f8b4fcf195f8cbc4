// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device_clock.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/measure/call_observer.hpp>
#include <fanout/measure/measured_shard.hpp>
#include <fanout/measure/profiler_ranges.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/memory/transfer_log.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/thread_number.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A device of a measured call.
struct MeasuredDevice {
  DeviceClock clock;
  MemorySpace memory = host_memory;
  Clock::Time call_began = 0;  ///< by that clock
};

/// The clock of one shard of a measured call. Its functions are called by the thread that runs the shard.
class ShardClock final : public TransferLog {
 public:
  /// Borrows `times` and the name of the model's type.
  ShardClock(CallTimes::Shard& times, const MeasuredShard& shard, std::string_view model) noexcept
      : times_(times), shard_(shard), model_(model) {}

  /// Begins on a device, which it borrows.
  FANOUT_INLINE void begin(const MeasuredDevice& device) noexcept;
  FANOUT_INLINE void forward_begins() noexcept;
  /// After this, another thread may call end().
  FANOUT_INLINE void forward_returned() noexcept;
  FANOUT_INLINE void end(bool failed) noexcept;

  void note(const MemorySpace& to, const MemorySpace& from, std::size_t bytes) noexcept override {
    note_in(to, bytes);
    note_out(from, bytes);
  }
  /// Both return false if the device has no such memory of its own.
  bool note_in(const MemorySpace& to, std::size_t bytes) noexcept { return is_own(to) && add(times_.bytes_in, bytes); }
  bool note_out(const MemorySpace& from, std::size_t bytes) noexcept {
    return is_own(from) && add(times_.bytes_out, bytes);
  }

 private:
  std::int64_t elapsed() const noexcept { return device_->clock.done() - device_->call_began; }
  bool is_own(const MemorySpace& memory) const noexcept {
    return device_ != nullptr && memory == device_->memory && !(memory == host_memory);
  }
  static bool add(std::uint64_t& sum, std::size_t bytes) noexcept {
    sum += bytes;
    return true;
  }

  CallTimes::Shard& times_;
  const MeasuredDevice* device_ = nullptr;  // null until it begins
  MeasuredShard shard_;
  MeasuredShard outer_shard_;
  std::string_view model_;
  ProfilerRange range_;
  TransferLog* outer_ = nullptr;
  bool returned_ = false;
};

/// The clocks of the shards of a call.
class ShardClocks : public InlineArray<ShardClock> {
 public:
  /// Borrows all. `call` is the call's id.
  ShardClocks(InlineArray<CallTimes::Shard>& shards, std::uint64_t call, std::string_view model)
      : InlineArray<ShardClock>(shards.size(), [&](std::size_t i) {
          return ShardClock(shards[i], {.call = call, .shard = static_cast<std::uint32_t>(i)}, model);
        }) {}
};

/// What a call tells its clock, as a table of functions. Only the clock's constructor names them, so programs that
/// never measure have none of their code.
struct ClockPart {
  /// Call this before shards run; again if the call is made again. Copies the plan, since the call is told when its
  /// frame has gone. `number` is that of the call. Throws std::bad_alloc.
  void (CallClock::*plan_is)(const Plan& plan, std::uint32_t number);

  /// Called by the thread that runs a shard: when it begins on a device, when it has its inputs, when `forward` has
  /// returned, and when it has ended. Another thread may call shard_ended().
  void (CallClock::*shard_begins)(std::size_t shard, std::size_t device) noexcept;
  void (CallClock::*forward_begins)(std::size_t shard) noexcept;
  void (CallClock::*forward_returned)(std::size_t shard) noexcept;
  void (CallClock::*shard_ended)(std::size_t shard, bool failed) noexcept;

  /// Called when all shards have ended, if they ran on other devices than planned. Copies the plan.
  void (CallClock::*ran_by)(const Plan& plan);
  /// Called when all shards have ended, if the call is made again. This try is told as a call that has failed. Then the
  /// next one begins.
  void (CallClock::*fails_and_begins)() noexcept;
  /// Called when all shards of a synchronous call have ended, by the thread that gathers next.
  void (CallClock::*all_ended)() noexcept;
  /// Called when the result of an asynchronous call is asked for, and all shards have ended.
  void (CallClock::*result_is_asked_for)() noexcept;
  /// Called last, by the thread that gathered or dropped the result, also if the call has thrown. Deletes the clock.
  void (CallClock::*end)() noexcept;

  static const ClockPart table;
};

/// The clock of one measured call. When the call has ended, it tells its observers. An asynchronous call ends when its
/// result is taken or dropped, which may be after the end of its model. A call that fails before plan_is(), or whose
/// shards do not end, is not told.
class CallClock final : public TransferLog, public Pooled {
 public:
  /// Made when the call begins. Borrows the name of the model's type. An asynchronous call retains the observer.
  FANOUT_INLINE explicit CallClock(const MeasuredStart& start);
  CallClock(const CallClock&) = delete;
  CallClock& operator=(const CallClock&) = delete;

  /// Calls a function of the table.
  template <class F, class... A>
  [[gnu::cold, gnu::noinline]] void tell(F ClockPart::*function, const A&... arguments) {
    (this->*(part_.*function))(arguments...);
  }

  /// Called before a shard that has ended runs again.
  void shard_runs_again() noexcept { running_.fetch_add(1, MemoryOrder::relaxed); }

  void note(const MemorySpace& to, const MemorySpace& from, std::size_t bytes) noexcept override {
    for (ShardClock& shard : clocks()) {
      if (shard.note_in(to, bytes)) break;
    }
    for (ShardClock& shard : clocks()) {
      if (shard.note_out(from, bytes)) break;
    }
  }

 private:
  friend ClockPart;

  FANOUT_INLINE void plan_is(const Plan& plan, std::uint32_t number);
  void shard_begins(std::size_t i, std::size_t device) noexcept { clocks()[i].begin(devices_[device]); }
  void forward_begins(std::size_t i) noexcept { clocks()[i].forward_begins(); }
  void forward_returned(std::size_t i) noexcept { clocks()[i].forward_returned(); }
  FANOUT_INLINE void shard_ended(std::size_t i, bool failed) noexcept;
  void ran_by(const Plan& plan) {
    plan_ = plan;
    times_.plan = &plan_;
  }
  FANOUT_INLINE void fails_and_begins() noexcept;
  FANOUT_INLINE void all_ended() noexcept;
  FANOUT_INLINE void result_is_asked_for() noexcept;
  FANOUT_INLINE void end() noexcept;

  std::int64_t elapsed() const noexcept { return main_.now() - times_.began; }

  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): plan_is() has made them
  ShardClocks& clocks() noexcept { return *clocks_; }

  /// True if all shards have ended. A call that could not be started has none. In the child of a fork, those that the
  /// parent runs never end.
  bool has_run() const noexcept { return shards_ && shards_->size() != 0 && running_.load(MemoryOrder::acquire) == 0; }

  /// When the call begins, by a device's clock. If that and the main device's clock are the clock of the process, it is
  /// the same time as the call's.
  Clock::Time begin_on(const DeviceClock& clock) const noexcept {
    return clock.is_own() || main_.is_own() ? clock.now() : began_;
  }
  FANOUT_INLINE void join(std::int64_t at_least) noexcept;

  FANOUT_INLINE void gather_begins() noexcept;

  FANOUT_INLINE void tell_end() noexcept;
  FANOUT_INLINE void tell_observers(bool failed) noexcept;

  const ClockPart& part_ = ClockPart::table;
  CallObserver* const observer_;
  std::uint64_t id_;
  const DeviceClock main_;
  Clock::Time began_ = main_.now();
  const InlineArray<DeviceId> ids_;
  InlineArray<MeasuredDevice> devices_;
  std::optional<InlineArray<CallTimes::Shard>> shards_;
  std::optional<ShardClocks> clocks_;
  CallTimes times_;
  Plan plan_;
  Atomic<std::size_t> running_{0};  // shards
  Atomic<std::size_t> rows_done_{0};
  Atomic<bool> failed_{false};
  int thrown_ = std::uncaught_exceptions();
  TransferLog* outer_ = nullptr;  // of this thread, while it gathers
  ProfilerRange range_;
};

inline constexpr ClockPart ClockPart::table{.plan_is = &CallClock::plan_is,
                                            .shard_begins = &CallClock::shard_begins,
                                            .forward_begins = &CallClock::forward_begins,
                                            .forward_returned = &CallClock::forward_returned,
                                            .shard_ended = &CallClock::shard_ended,
                                            .ran_by = &CallClock::ran_by,
                                            .fails_and_begins = &CallClock::fails_and_begins,
                                            .all_ended = &CallClock::all_ended,
                                            .result_is_asked_for = &CallClock::result_is_asked_for,
                                            .end = &CallClock::end};

/// Makes the clock of a call. Null without memory.
FANOUT_INLINE CallClock* make_call_clock(const MeasuredStart& start) noexcept;

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/measure/call_clock.ipp>
#endif
