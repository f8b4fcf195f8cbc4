// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/device/device.hpp>
#include <fanout/device/device_clock.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/worker/registry.hpp>

namespace fanout_test {

/// A device with a clock of its own, which only tests advance. Works in the host's memory, on the calling thread, so
/// that all times are exact.
class ClockDevice {
 public:
  explicit ClockDevice(int index)
      : worker_(&fanout::backend::registry().worker({.kind = "clock", .index = index}, {}, false)) {}

  fanout::DeviceId id() const { return worker_->id(); }
  fanout::backend::Memory memory() const { return {}; }
  fanout::backend::Worker& worker() const { return *worker_; }

  struct Entered {
    Entered() { ++entered(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered() { --entered(); }
  };
  Entered enter() const { return {}; }
  /// What was left to the device takes its time.
  void synchronize() const { time_of_device() += left().exchange(0); }
  std::int64_t time() const noexcept { return entered() == 0 ? time_of_thread() : time_of_device(); }

  static std::vector<ClockDevice> visible() { return {ClockDevice(0), ClockDevice(1)}; }
  friend bool operator==(const ClockDevice&, const ClockDevice&) = default;

  static std::atomic<std::int64_t>& time_of_thread() {
    static std::atomic<std::int64_t> time{0};
    return time;
  }
  std::atomic<std::int64_t>& time_of_device() const { return state().time; }
  /// How long it works on when `forward` has returned.
  std::atomic<std::int64_t>& left() const { return state().left; }

  /// Sets the time of the thread and of all devices.
  static void all_at(std::int64_t time) {
    time_of_thread() = time;
    for (int i = 0; i < most; ++i) {
      states()[i].time = time;
      states()[i].left = 0;
    }
  }

 private:
  struct State {
    std::atomic<std::int64_t> time{0};
    std::atomic<std::int64_t> left{0};
  };
  static constexpr int most = 4;

  static int& entered() {
    static thread_local int entered = 0;
    return entered;
  }
  static State* states() {
    static State states[most];
    return states;
  }
  State& state() const { return states()[id().index]; }

  fanout::backend::Worker* worker_;
};
static_assert(fanout::Device<ClockDevice>);
static_assert(fanout::detail::HasOwnClock<ClockDevice>);

inline fanout::DeviceSet<ClockDevice> clock_devices(int count) {
  std::vector<ClockDevice> devices;
  for (int i = 0; i < count; ++i) devices.emplace_back(i);
  return fanout::DeviceSet<ClockDevice>(devices);
}

}  // namespace fanout_test
