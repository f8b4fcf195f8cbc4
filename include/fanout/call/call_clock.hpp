// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include <fanout/base/exchange.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/call/call_observer.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/device/device_clock.hpp>
#include <fanout/device/device_set.hpp>
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
  template <class D>
  static MeasuredDevice of(const D& device) {
    const DeviceClock clock = DeviceClock::of(device);
    return {clock, backend::Memory(device.memory()).space, clock.now()};
  }

  DeviceClock clock;
  MemorySpace memory = host_memory;
  Clock::Time call_began = 0;
};

// What follows are templates, so that they cost nothing to compile in a file that calls no model. `Times` is always
// CallTimes.

/// The clock of one shard of a measured call. Its functions are called by the thread that runs the shard.
template <class Times>
class ShardClock final : public TransferLog {
 public:
  explicit ShardClock(typename Times::Shard& times) noexcept : times_(times) {}

  void begin(const MeasuredDevice& device) noexcept {
    device_ = &device;
    times_.thread = thread_number();
    outer_ = detail::exchange(transfer_log(), static_cast<TransferLog*>(this));
    times_.began = elapsed();
  }
  void forward_begins() noexcept { times_.forward = elapsed(); }
  void forward_returned() noexcept { times_.returned = elapsed(); }
  void end() noexcept {
    times_.ended = elapsed();
    if (times_.returned == 0) times_.returned = times_.ended;
    transfer_log() = outer_;
  }

  void note(const MemorySpace& to, const MemorySpace& from, std::size_t bytes) noexcept override {
    note_if_own(to, from, bytes);
  }
  /// Returns false if the memory of the device is neither.
  bool note_if_own(const MemorySpace& to, const MemorySpace& from, std::size_t bytes) noexcept {
    if (device_ == nullptr) return false;
    if (to == device_->memory) times_.bytes_in += bytes;
    if (from == device_->memory) times_.bytes_out += bytes;
    return to == device_->memory || from == device_->memory;
  }

 private:
  std::int64_t elapsed() const noexcept { return device_->clock.done() - device_->call_began; }

  typename Times::Shard& times_;
  const MeasuredDevice* device_ = nullptr;
  TransferLog* outer_ = nullptr;
};

template <class... Ds>
[[gnu::cold, gnu::noinline]] DeviceClock main_clock(const DeviceSet<Ds...>& devices) noexcept {
  DeviceClock clock;
  devices.visit(0, [&clock](const auto& device) { clock = DeviceClock::of(device); });
  return clock;
}

/// The clock of one measured call. When the call has ended, it tells its observers. An asynchronous call ends with its
/// last shard; the clock may then outlive its model.
template <class Times>
class CallClock final : public TransferLog, public Pooled {
 public:
  /// Made when the plan is. Borrows all. `observer` may be null.
  template <class... Ds>
  CallClock(Clock::Time began, CallObserver* observer, const Plan& plan, const DeviceSet<Ds...>& devices,
            std::uint32_t number, bool asynchronous)
      : observer_(observer),
        main_(main_clock(devices)),
        devices_(devices.size(),
                 [&devices](std::size_t i) {
                   MeasuredDevice measured;
                   devices.visit(i, [&measured](const auto& device) { measured = MeasuredDevice::of(device); });
                   return measured;
                 }),
        shards_(plan.size()),
        clocks_(plan.size(), [this](std::size_t i) { return ShardClock<Times>(shards_[i]); }),
        times_{.plan = &plan,
               .devices = devices.ids().data(),
               .device_count = devices.size(),
               .shards = shards_.data(),
               .began = began,
               .number = number,
               .thread = thread_number(),
               .asynchronous = asynchronous},
        running_(plan.size()) {
    times_.planned = elapsed();
  }

  ShardClock<Times>& operator[](std::size_t i) noexcept { return clocks_[i]; }

  /// Called when a shard begins on a device, by the thread that runs it.
  void shard_begins(std::size_t i, std::size_t device) noexcept { clocks_[i].begin(devices_[device]); }

  /// Called when all shards have ended, if they ran on other devices than planned. Copies the plan.
  void ran_by(const Plan& plan) {
    as_run_ = plan;
    times_.plan = &as_run_;
  }

  /// Called when a shard has ended, by the thread that ran it.
  void shard_ended(std::size_t i, bool failed) noexcept {
    clocks_[i].end();
    if (failed) failed_.store(true, MemoryOrder::relaxed);
    if (running_.fetch_sub(1, MemoryOrder::acq_rel) != 1 || !times_.asynchronous) return;
    join();
    times_.ended = times_.joined;
    tell(failed_.load(MemoryOrder::relaxed));
  }

  /// Called when all shards have ended, by the thread that gathers next.
  void all_ended() noexcept {
    if (times_.asynchronous) return;
    join();
    gathers_ = true;
    outer_ = detail::exchange(transfer_log(), static_cast<TransferLog*>(this));
  }

  /// Called last, by the thread that gathered, also if the call has thrown.
  void end() noexcept {
    if (times_.asynchronous) return;
    if (gathers_) transfer_log() = outer_;
    times_.ended = elapsed();
    if (times_.joined == 0) times_.joined = times_.ended;
    tell(std::uncaught_exceptions() > thrown_);
  }

  void note(const MemorySpace& to, const MemorySpace& from, std::size_t bytes) noexcept override {
    for (ShardClock<Times>& shard : clocks_) {
      if (shard.note_if_own(to, from, bytes)) return;
    }
  }

 private:
  std::int64_t elapsed() const noexcept { return main_.now() - times_.began; }

  void join() noexcept {
    times_.joined = elapsed();
    for (const typename Times::Shard& shard : shards_) {  // its clock may be another one
      if (shard.ended > times_.joined) times_.joined = shard.ended;
    }
  }

  void tell(bool failed) noexcept {
    times_.failed = failed;
    if (observer_ != nullptr) observer_->ended(times_);
    process_observer.ended(times_);
  }

  CallObserver* const observer_;
  const DeviceClock main_;
  InlineArray<MeasuredDevice> devices_;
  InlineArray<typename Times::Shard> shards_;
  InlineArray<ShardClock<Times>> clocks_;
  Times times_;
  Plan as_run_;
  Atomic<std::size_t> running_;  // shards
  const int thrown_ = std::uncaught_exceptions();
  Atomic<bool> failed_{false};
  bool gathers_ = false;
  TransferLog* outer_ = nullptr;  // of this thread, while it gathers
};

template <class Devices>
[[gnu::cold, gnu::noinline]] Clock::Time time_of_main_device(const Devices& devices) noexcept {
  return main_clock(devices).now();
}

/// The time by the clock of the main device if a call that begins now is measured: if `observer` is not null or all calls
/// of the process are observed. Otherwise Clock::never.
template <class... Ds>
[[gnu::always_inline]] inline Clock::Time measured_from(const CallObserver* observer, const DeviceSet<Ds...>& devices) noexcept {
  if (observer == nullptr && !process_observer.exists()) [[likely]]
    return Clock::never;
  return time_of_main_device(devices);
}

/// Measures a call, if it is to be measured. The call ends when this goes out of scope.
template <class Times = CallTimes>
class CallMeter {
 public:
  /// Called when the plan is made. `began` is what measured_from() returned. Borrows all else, but the observer only as
  /// long as shards run.
  template <class... Ds>
  CallMeter(Clock::Time began, CallObserver* observer, const Plan& plan, const DeviceSet<Ds...>& devices,
            CallStart& start, bool asynchronous = false) {
    if (began != Clock::never) [[unlikely]]
      begin(began, observer, plan, devices, start, asynchronous);
  }
  CallMeter(const CallMeter&) = delete;
  CallMeter& operator=(const CallMeter&) = delete;
  ~CallMeter() {
    if (clock_ != nullptr) [[unlikely]]
      end();
  }

 private:
  template <class... Ds>
  [[gnu::cold, gnu::noinline]] void begin(Clock::Time began, CallObserver* observer, const Plan& plan,
                                          const DeviceSet<Ds...>& devices, CallStart& start, bool asynchronous) {
    start.clock = clock_ = make_pooled<CallClock<Times>>(began, observer, plan, devices, start.number, asynchronous);
  }

  [[gnu::cold, gnu::noinline]] void end() noexcept {
    clock_->end();
    delete clock_;
  }

  CallClock<Times>* clock_ = nullptr;
};

}}}  // namespace fanout::v0::detail
