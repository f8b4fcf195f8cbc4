// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/device/device.hpp>
#include <fanout/device/host_device.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// How launch() makes the calls `f(0)` ... `f(n - 1)` on a kind of device. A kind whose work runs on other threads than
/// the host's specialises it, as fanout/cuda/launch.cuh does for CudaDevice. A kind whose work runs on the thread that
/// entered the device inherits LoopLauncher:
///
///     template <>
///     struct fanout::backend::Launcher<MyDevice> : fanout::backend::LoopLauncher {};
///
/// A thread that has entered the device calls `launch(device, n, f)`. It may return before the calls are made, and
/// keeps a copy of `f` then. The calls are made in order with earlier and later work of the device.
// Not constrained: the specialisation for HostDevice would check the concept in each file.
template <class D>
struct Launcher {
  template <class F>
  static void launch(const D&, std::size_t, const F&) {
    static_assert(sizeof(D) == 0,
                  "fanout: launch() is not defined for this kind of device; for a CudaDevice include "
                  "fanout/cuda/launch.cuh and compile with nvcc, for your own kind specialise "
                  "fanout::backend::Launcher");
  }
};

/// Makes the calls on the calling thread, one at a time. All are made on return.
struct LoopLauncher {
  template <Device D, class F>
  static void launch(const D&, std::size_t n, const F& f) {
    for (std::size_t i = 0; i < n; ++i) f(i);
  }
};

template <>
struct Launcher<HostDevice> : LoopLauncher {};

}}}  // namespace fanout::v0::backend
