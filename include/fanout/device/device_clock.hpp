// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>

#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A device with a clock of its own: see Device.
template <class D>
concept HasOwnClock = requires(const D& device) {
  { device.time() } -> std::same_as<std::int64_t>;
};

/// The clock of a device of any type. Borrows the device. By default, and for a device without a clock of its own, it
/// is Clock.
class DeviceClock {
 public:
  template <class D>
  static DeviceClock of([[maybe_unused]] const D& device) noexcept {
    DeviceClock clock;
    if constexpr (HasOwnClock<D>) {
      clock.device_ = &device;
      clock.outside_ = [](const void* of) noexcept { return static_cast<const D*>(of)->time(); };
      clock.inside_ = [](const void* of) noexcept {
        const D& own = *static_cast<const D*>(of);
        [[maybe_unused]] const auto entered = own.enter();
        return own.time();
      };
    }
    return clock;
  }

  /// True for a clock of the device's own.
  bool is_own() const noexcept { return device_ != nullptr; }

  /// The time of the thread, which has entered no device.
  Clock::Time now() const noexcept { return device_ == nullptr ? Clock::now() : outside_(device_); }
  /// The time at which all work that the device has been given is done. Without a clock of its own, the time now.
  Clock::Time done() const noexcept { return device_ == nullptr ? Clock::now() : inside_(device_); }

 private:
  const void* device_ = nullptr;
  Clock::Time (*outside_)(const void*) noexcept = nullptr;
  Clock::Time (*inside_)(const void*) noexcept = nullptr;
};

}}}  // namespace fanout::v0::detail
