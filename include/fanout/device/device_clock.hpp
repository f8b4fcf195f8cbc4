// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>

#include <fanout/base/polymorphic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A device with a clock of its own: see Device.
template <class D>
concept HasOwnClock = requires(const D& device) {
  { device.time() } -> std::same_as<std::int64_t>;
};

/// Such a device on which one thread can do what several would do at the same time: see DeviceClock::run_from().
template <class D>
concept HasOwnThreads = HasOwnClock<D> && requires(const D& device, Clock::Time time) {
  device.thread_from(time);
  device.wait_until(time);
};

/// The clock of a device of any type: the device's own if it has one, otherwise Clock. Keeps a copy of a device with a
/// clock of its own, so it may be read when the device set has gone. By default, it is Clock.
class DeviceClock {
 public:
  DeviceClock() noexcept = default;
  /// Throws std::bad_alloc. Does not throw for a device without a clock of its own.
  template <class D>
  static DeviceClock of([[maybe_unused]] const D& device) {
    if constexpr (HasOwnClock<D>) {
      return DeviceClock(new OwnOf<D>(device));
    } else {
      return DeviceClock();
    }
  }

  /// True for a clock of the device's own.
  bool is_own() const noexcept { return static_cast<bool>(own_); }

  /// The time of the thread, which has entered no device.
  Clock::Time now() const noexcept { return is_own() ? own_->now() : Clock::now(); }
  /// The time at which all work that the device has been given is done. Without a clock of its own, the time now.
  Clock::Time done() const noexcept { return is_own() ? own_->done() : Clock::now(); }

  /// Calls `f()`, which must not throw, as if on another thread that begins at `begin`. Returns the time when it ends.
  /// The time of this thread does not move: see wait_until(). Only for a clock of the device's own.
  template <class F>
  Clock::Time run_from(Clock::Time begin, const F& f) const noexcept {
    return own_->run_from(
        begin, [](const void* of) noexcept { (*static_cast<const F*>(of))(); }, &f);
  }
  /// Moves the time of the thread to `time`, unless it is later. Only for a clock of the device's own.
  void wait_until(Clock::Time time) const noexcept { own_->wait_until(time); }

 private:
  struct Own {
    Own() = default;
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
    virtual ~Own() = default;
    virtual Clock::Time now() const noexcept = 0;
    virtual Clock::Time done() const noexcept = 0;
    virtual Clock::Time run_from(Clock::Time begin, void (*f)(const void* of) noexcept,
                                 const void* of) const noexcept = 0;
    virtual void wait_until(Clock::Time time) const noexcept = 0;
    virtual Own* copy() const = 0;
  };
  template <class D>
  struct OwnOf final : Own {
    explicit OwnOf(const D& of) : device(of) {}
    Clock::Time now() const noexcept override { return device.time(); }
    Clock::Time done() const noexcept override {
      [[maybe_unused]] const auto entered = device.enter();
      return device.time();
    }
    Clock::Time run_from(Clock::Time begin, void (*f)(const void* of) noexcept,
                         const void* of) const noexcept override {
      if constexpr (HasOwnThreads<D>) {
        const auto thread = device.thread_from(begin);
        f(of);
        return now();
      } else {
        f(of);
        return now();
      }
    }
    void wait_until(Clock::Time time) const noexcept override {
      if constexpr (HasOwnThreads<D>) device.wait_until(time);
    }
    Own* copy() const override { return new OwnOf(device); }
    D device;
  };

  explicit DeviceClock(Own* own) noexcept : own_(own) {}

  Polymorphic<Own> own_;
};

}}}  // namespace fanout::v0::detail
