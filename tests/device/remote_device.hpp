// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/worker/registry.hpp>

#include "memory/remote_memory.hpp"

namespace fanout_test {

/// A device with a memory of its own, which only it may touch: see RemoteMemory. Driven by a thread of the host.
class RemoteDevice {
 public:
  static constexpr bool has_own_memory = true;

  explicit RemoteDevice(int index)
      : worker_(&fanout::backend::registry().worker({.kind = "remote", .index = index},
                                                    fanout::backend::registry().cores(), false)) {}

  fanout::DeviceId id() const { return worker_->id(); }
  fanout::backend::Memory memory() const { return RemoteMemory::memory(id().index); }
  fanout::backend::Worker& worker() const { return *worker_; }

  struct Entered {
    ~Entered() {}
  };
  Entered enter() const { return {}; }
  void synchronize() const { ++synchronized(); }
  /// Waits for nothing, but counts; the next one throws if `breaks()`.
  fanout::backend::Completion completion() const {
    ++open_completions();
    return {[](void*) {
              --open_completions();
              if (breaks().exchange(false)) throw fanout::Error("the remote device broke down");
            },
            nullptr};
  }
  static std::atomic<int>& synchronized() {
    static std::atomic<int> count{0};
    return count;
  }
  static std::atomic<int>& open_completions() {
    static std::atomic<int> count{0};
    return count;
  }
  static std::atomic<bool>& breaks() {
    static std::atomic<bool> breaks{false};
    return breaks;
  }
  static std::vector<RemoteDevice> visible() { return {RemoteDevice(0), RemoteDevice(1), RemoteDevice(2)}; }
  friend bool operator==(const RemoteDevice&, const RemoteDevice&) = default;

 private:
  fanout::backend::Worker* worker_;
};
static_assert(fanout::Device<RemoteDevice>);

inline fanout::DeviceSet<RemoteDevice> remote_devices(int count) {
  std::vector<RemoteDevice> devices;
  for (int i = 0; i < count; ++i) devices.emplace_back(i);
  return fanout::DeviceSet<RemoteDevice>(devices);
}

}  // namespace fanout_test
