// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: this type is not a Device: give it id(), memory(), worker(), enter(), synchronize(), a static visible()
// expect: Device
// expect: memory()
#include <vector>

#include <fanout/fanout.hpp>

struct ToyDevice {
  fanout::HostDevice host;

  fanout::DeviceId id() const { return {.kind = "toy", .index = 0}; }
#ifdef FANOUT_CONTROL
  fanout::backend::Memory memory() const { return {}; }
#endif
  fanout::backend::Worker& worker() const { return host.worker(); }
  fanout::HostDevice::Entered enter() const { return {}; }
  void synchronize() const {}
  static std::vector<ToyDevice> visible() { return {ToyDevice{fanout::host_devices(1)[0]}}; }
  friend bool operator==(const ToyDevice&, const ToyDevice&) = default;
};

struct Model {
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
};

int main() {
  const fanout::DeviceSet<ToyDevice> devices(ToyDevice::visible());
  const fanout::ParallelModel model{Model{}, devices};  // no second error here
  const auto y = model(fanout::Tensor<float, 1>(4));
  return y.empty() ? 1 : 0;
}
