// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model with a pointer, even to const, for a device that cannot reach the host's memory.
// expect: fanout: on a device with its own memory, a pointer or a reference in this model
#include <vector>

#include <fanout/fanout.hpp>

struct GpuState {
  static constexpr bool has_own_memory = true;
  fanout::HostDevice host;
  fanout::DeviceId id() const { return {.kind = "GPU"}; }
  fanout::backend::Memory memory() const { return {}; }
  fanout::backend::Worker& worker() const { return host.worker(); }
  fanout::HostDevice::Entered enter() const { return host.enter(); }
  void synchronize() const {}
  static std::vector<GpuState> visible() { return {GpuState{fanout::HostDevice::visible()[0]}}; }
  friend bool operator==(const GpuState&, const GpuState&) = default;
};

struct Model {
#ifdef FANOUT_CONTROL
  fanout::Tensor<float, 1> table;
#else
  const float* table;
#endif
  int forward(fanout::View<const float, 1> x) const { return static_cast<int>(x.size()); }
};

int main() {
  const fanout::ParallelModel model{Model{}, fanout::AllVisible<GpuState>{}};
  model(fanout::Tensor<float, 1>(3));
}
