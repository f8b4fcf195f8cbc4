// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/device_info.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

bool can_access_peer(GpuIndex device, GpuIndex peer) {
  detail::GpuState& gpu = device.gpu();
  gpu.require();
  const int other = peer.get_peer();
  int can = 0;
  check(::cudaDeviceCanAccessPeer(&can, gpu.index(), other), "cudaDeviceCanAccessPeer", gpu.index());
  return can != 0;
}

}}}  // namespace fanout::v0::cuda
