// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>

#include <nccl.h>

#include <fanout/base/device_id.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/cuda/nccl/failure_watch.hpp>
#include <fanout/cuda/nccl/nccl_clique.hpp>
#include <fanout/cuda/nccl/nccl_error.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/transfer/peer_access.hpp>

namespace fanout { inline namespace v0 {

namespace cuda::detail {

class NcclTransport final : public backend::CollectiveTransport {
 public:
  backend::TransportRanks* open(std::span<const DeviceId> devices) const override {
    if (!can_join(devices)) return nullptr;
    NcclClique* clique = NcclClique::find_idle(devices, {.first = 0, .all = devices.size()}, idle_cliques);
    if (clique == nullptr) clique = make(devices);
    clique->use(devices);
    if (failure_watch.add(*clique)) return clique;
    clique->close();
    return nullptr;
  }

  /// True if NCCL can connect these devices: each on a GPU of its own, and each two GPUs copy directly. Throws what a
  /// check of a pair throws.
  static bool can_join(std::span<const DeviceId> devices) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (!(devices[i].kind == DeviceKind("cuda"))) return false;
      for (std::size_t k = 0; k < i; ++k) {
        if (devices[k].index == devices[i].index) return false;  // NCCL takes each GPU once
      }
    }
    return all_connected(devices);
  }

  /// Throws DeviceLost if one of the GPUs is lost.
  static void refuse_lost_gpus(std::span<const DeviceId> devices) {
    for (const DeviceId& device : devices) {
      static_cast<void>(streams_of(gpu_at(device.index), device.instance).compute().is_idle());
    }
  }

 private:
  /// Throws NcclError. If a GPU is lost, throws DeviceLost, which names it.
  static NcclClique* make(std::span<const DeviceId> devices) {
    try {
      return new NcclClique(devices);
    } catch (const NcclError&) {
      refuse_lost_gpus(devices);
      throw;
    }
  }

  /// Connects each pair of GPUs: in one process, NCCL's kernels use the memory of their peers. False if a pair cannot
  /// be connected.
  static bool all_connected(std::span<const DeviceId> devices) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (!peer_trusted(devices[k].index, devices[i].index)) return false;
      }
    }
    return true;
  }
};
inline constexpr NcclTransport nccl_transport;

}  // namespace cuda::detail

/// Collectives by NCCL, for `Options{.collectives = fanout::nccl_collectives()}`. If each shard of a call is on its own
/// GPU, and each two of these GPUs copy directly (see peer_link()), NCCL passes arrays in GPU memory between them, in
/// the devices' streams. Otherwise they go through host memory. Communicators are cached for later calls on the same
/// GPUs. Concurrent calls use different ones. The first call on a pair of GPUs checks it, which takes milliseconds.
///
/// NCCL also adds the arrays that forward returns under psum() and pmean(), if each shard's array is on its own GPU. It
/// adds in an order of its own, so the last digits may differ from those of the host.
///
/// If a GPU or a connection fails, the collectives are aborted on all GPUs of the call, within some milliseconds. The
/// call's ReplicaError has the failure of that shard; in a sum of results, the call throws the failure. A thread of the
/// process looks for failures while calls use NCCL. The result lives until the process ends.
inline const backend::CollectiveTransport* nccl_collectives() noexcept { return &cuda::detail::nccl_transport; }

}}  // namespace fanout::v0
