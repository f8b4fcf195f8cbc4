// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include <fanout/device/device.hpp>
#include <fanout/worker/registry.hpp>

namespace fanout_test {

/// A second kind of device: two of them, driven by threads of the host, in the host's memory.
class ToyDevice {
 public:
  explicit ToyDevice(int index)
      : worker_(&fanout::backend::registry().worker({.kind = "toy", .index = index},
                                                    fanout::backend::registry().cores(), false)) {}

  fanout::DeviceId id() const { return worker_->id(); }
  fanout::backend::Memory memory() const { return {}; }
  fanout::backend::Worker& worker() const { return *worker_; }

  struct Entered {
    ~Entered() {}
  };
  Entered enter() const { return {}; }
  void synchronize() const {}
  static std::vector<ToyDevice> visible() { return {ToyDevice(0), ToyDevice(1)}; }
  friend bool operator==(const ToyDevice&, const ToyDevice&) = default;

 private:
  fanout::backend::Worker* worker_;
};
static_assert(fanout::Device<ToyDevice>);

}  // namespace fanout_test
