// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime_api.h>

#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/transfer/peer_access.hpp>

#include "cuda/stand_in/stand_in.h"

namespace fanout_test {

/// Pairs are checked as if nobody had asked yet, for as long as this lives; and then as they were.
class NothingChecked {
 public:
  NothingChecked() : before_(fanout::cuda::detail::only_peer_table.exchange(new fanout::cuda::detail::PeerTable)) {
    close();
  }
  NothingChecked(const NothingChecked&) = delete;
  NothingChecked& operator=(const NothingChecked&) = delete;
  ~NothingChecked() {
    close();
    stand_in_set_peer(0, 1, 1);
    stand_in_set_corrupting(0, 1, 0);
    stand_in_set_corrupting(1, 0, 0);
    auto* table = fanout::cuda::detail::only_peer_table.exchange(before_);
    for (auto& row : table->entries) {
      for (auto& entry : row) delete entry.pair.load();
    }
    delete table;
    if (before_ == nullptr) return;
    const auto* const pair = before_->entries[0][1].pair.load();
    if (pair != nullptr && pair->state.load() == fanout::cuda::detail::PeerState::direct)
      set_pool_access(cudaMemAccessFlagsProtReadWrite);
  }

  /// Ends access that was enabled between the first two GPUs.
  static void close() {
    for (const int gpu : {0, 1}) {
      const fanout::cuda::DeviceGuard guard(gpu);
      if (cudaDeviceDisablePeerAccess(1 - gpu) != cudaSuccess) static_cast<void>(cudaGetLastError());
    }
    set_pool_access(cudaMemAccessFlagsProtNone);
  }

 private:
  /// Of the first two GPUs, to each other's pool.
  static void set_pool_access(cudaMemAccessFlags flags) {
    for (const int gpu : {0, 1}) {
      cudaMemPool_t pool = fanout::cuda::detail::gpu_at(gpu).pool().load();
      cudaMemAccessDesc access{};
      access.location = {cudaMemLocationTypeDevice, 1 - gpu};
      access.flags = flags;
      if (pool == nullptr || cudaMemPoolSetAccess(pool, &access, 1) == cudaSuccess) continue;
      static_cast<void>(cudaGetLastError());
    }
  }

  fanout::cuda::detail::PeerTable* before_;
};

}  // namespace fanout_test
