// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/device/device.hpp>
#include <fanout/device/host_device.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// How a kind of device makes `n` calls `f(0)` ... `f(n - 1)`; what launch() uses. A kind of device whose work is done
/// in other threads than the host's specialises it, as fanout/cuda/launch.cuh does for CudaDevice; one whose work is
/// done by the thread that entered it takes over LoopLauncher:
///
///     template <>
///     struct fanout::Launcher<MyDevice> : fanout::LoopLauncher {};
///
/// `launch(device, n, f)` is called by a thread that has entered the device. It may return before the calls are made,
/// with a copy of `f`; then they are made in order with what the device was given before and is given afterwards.
template <Device D>
struct Launcher {
  template <class F>
  static void launch(const D&, std::size_t, const F&) {
    static_assert(sizeof(D) == 0,
                  "fanout: nothing says how launch() works on this kind of device: for a CudaDevice include "
                  "fanout/cuda/launch.cuh and compile with nvcc; for one of your own specialise fanout::Launcher");
  }
};

/// Makes the calls at once, one after the other, in the calling thread.
struct LoopLauncher {
  template <Device D, class F>
  static void launch(const D&, std::size_t n, const F& f) {
    for (std::size_t i = 0; i < n; ++i) f(i);
  }
};

template <>
struct Launcher<HostDevice> : LoopLauncher {};

}}}  // namespace fanout::v0::backend
