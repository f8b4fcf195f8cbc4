// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/device/device_clock.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/waiting/wait_policy.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a call needs of a device of any kind, besides running `forward` on it.
struct DeviceEntry {
  template <class D>
  static DeviceEntry of(const D& device) {
    DeviceEntry entry{.worker = &device.worker(), .memory = device.memory(), .clock = DeviceClock::of(device)};
    if constexpr (requires { device.wait_rules(); }) entry.rules = &device.wait_rules();
    return entry;
  }

  backend::Worker* worker = nullptr;
  const WaitRules* rules = nullptr;  ///< null if the device has none
  backend::Memory memory = {};
  DeviceClock clock = {};
};

/// The devices of a set of any type. So all sets share the code that dispatches, deals and measures.
class DeviceTable {
 public:
  /// Borrows the set. Throws what the devices throw, and std::bad_alloc.
  template <class... Ds>
  [[gnu::cold, gnu::noinline]] explicit DeviceTable(const DeviceSet<Ds...>& devices)
      : ids_(devices.ids().data()), entries_(devices.size(), [&devices](std::size_t i) {
          DeviceEntry entry;
          devices.visit(i, [&entry](const auto& device) { entry = DeviceEntry::of(device); });
          return entry;
        }) {}

  std::size_t size() const noexcept { return entries_.size(); }
  const DeviceId* ids() const noexcept { return ids_; }
  const DeviceEntry& operator[](std::size_t i) const noexcept { return entries_[i]; }

 private:
  const DeviceId* ids_;
  InlineArray<DeviceEntry> entries_;
};

}}}  // namespace fanout::v0::detail
