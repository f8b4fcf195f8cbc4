// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <vector>

#include <fanout/device/device.hpp>
#include <fanout/device/host_device.hpp>

namespace fanout_test {

/// A second kind of device: the host's first two devices under another name. Counts how often it is used.
struct ToyDevice {
  fanout::HostDevice host;

  static inline std::atomic<int> entered = 0;
  static inline std::atomic<int> left = 0;
  static inline std::atomic<int> synchronized = 0;
  struct Entered {
    Entered() { ++entered; }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered() { ++left; }
  };

  fanout::DeviceId id() const { return {.kind = "toy", .index = host.id().index}; }
  fanout::backend::Memory memory() const { return {}; }
  fanout::backend::Worker& worker() const { return host.worker(); }
  Entered enter() const { return {}; }
  void synchronize() const { ++synchronized; }
  static std::vector<ToyDevice> visible() {
    std::vector<ToyDevice> all;
    for (const fanout::HostDevice& device : fanout::host_devices(2)) all.push_back({device});
    return all;
  }
  friend bool operator==(const ToyDevice&, const ToyDevice&) = default;
};
static_assert(fanout::Device<ToyDevice>);

}  // namespace fanout_test
