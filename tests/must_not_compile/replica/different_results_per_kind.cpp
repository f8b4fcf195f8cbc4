// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward returns different types on different kinds of devices
#include <type_traits>

#include <fanout/fanout.hpp>

/// A second kind of device, which is the host under another name.
struct ToyDevice {
  fanout::HostDevice host;

  fanout::DeviceId id() const { return {.kind = "toy", .index = host.id().index}; }
  fanout::backend::Memory memory() const { return {}; }
  fanout::backend::Worker& worker() const { return host.worker(); }
  fanout::HostDevice::Entered enter() const { return {}; }
  void synchronize() const {}
  static std::vector<ToyDevice> visible() { return {ToyDevice{fanout::host_devices(1)[0]}}; }
  friend bool operator==(const ToyDevice&, const ToyDevice&) = default;
};

struct Model {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1> x) const {
    using D = std::remove_cvref_t<decltype(ctx.device())>;
#ifdef FANOUT_CONTROL
    using Result = float;
#else
    using Result = std::conditional_t<std::is_same_v<D, ToyDevice>, float, double>;
#endif
    static_assert(fanout::Device<D>);
    return fanout::Tensor<Result, 1>(x.size());
  }
};

int main() {
  const auto devices = fanout::host_devices(1) | fanout::AllVisible<ToyDevice>{}.select();
  const fanout::ParallelModel model{Model{}, devices};
  (void)model(fanout::Tensor<float, 1>(4));
}
