// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/driver.hpp>
#include <fanout/cuda/runtime/held_bytes.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

class DeviceStreams;
class PeerReads;

/// The number of GPUs that the process may use, and the runtime's status if there are none.
struct GpuCount {
  int count = 0;
  cudaError_t status = cudaSuccess;
};

[[gnu::visibility("default")]] inline fanout::detail::Atomic<int> known_count{0};  // 0: not known yet
[[gnu::visibility("default")]] inline fanout::detail::Atomic<std::uint32_t> first_used_in{
    0};  // a fork epoch plus one; 0: not used yet

/// True in the child of a process that used CUDA before it forked. CUDA does not work there: it hangs, or returns a
/// status with many meanings.
inline bool forked_after_use() noexcept {
  const std::uint32_t used = first_used_in.load(fanout::detail::MemoryOrder::acquire);
  return used != 0 && used != fanout::detail::fork_epoch() + 1;
}

FANOUT_INLINE void refuse_fork();

/// Asks the runtime, which starts CUDA but makes no context. Returns 0 and the status if there are none. Caches only a
/// count above 0, since a driver may be loaded later. Never throws.
FANOUT_INLINE GpuCount count_gpus() noexcept;

/// Where a GPU's memory comes from if not from fanout's pool: see use_allocator().
struct MemorySource {
  void* (*allocate)(void* of, std::size_t bytes, cudaStream_t stream);
  void (*release)(void* of, void* data, std::size_t bytes, cudaStream_t stream) noexcept;
  void* of;
};

/// A block of a GPU's memory that no work in flight uses, kept for the next allocation of its size.
struct KeptBlock {
  fanout::detail::ForkSafeMutex mutex;  // guards all below
  void* data = nullptr;
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;  // in which it can be released
};

/// The state of one GPU in this process. Made when the GPU is first named, which makes no context. Never destroyed,
/// since tensors may outlive main(). Expensive members are made at their first use.
class GpuState {
 public:
  explicit GpuState(int index) noexcept : index_(index) {}
  GpuState(const GpuState&) = delete;
  GpuState& operator=(const GpuState&) = delete;

  int index() const noexcept { return index_; }
  MemorySpace space() const noexcept { return {.owner = {.kind = "cuda", .index = index_}}; }

  /// Throws if CUDA must not be called for the GPU any more: DeviceLost, or CudaError in a forked child.
  void require() const {
    refuse_fork();
    refuse_lost(index_);
  }
  /// True if require() would not throw. For destructors.
  bool usable() const noexcept {
    return !forked_after_use() && losses[index_].code.load(fanout::detail::MemoryOrder::acquire) == cudaSuccess;
  }

  /// The GPU's primary context, which the runtime uses too. Made at the first call and retained from then on. Throws
  /// DeviceLost and CudaError.
  FANOUT_INLINE ContextHandle context();
  /// The context; null before the first use.
  ContextHandle known_context() const noexcept { return context_.load(fanout::detail::MemoryOrder::acquire); }

  /// The runtime's properties of the GPU, cached. Makes no context. Throws DeviceLost and CudaError.
  FANOUT_INLINE const cudaDeviceProp& properties();

  /// Lock it to make a member of the GPU's state.
  fanout::detail::ForkSafeMutex& making() noexcept { return making_; }
  /// The pool of the GPU's memory, made by pool_of(), the list of its devices' streams, made by streams_of(), and the
  /// copies that other GPUs make of its memory, made by peer_reads_of().
  fanout::detail::Atomic<cudaMemPool_t>& pool() noexcept { return pool_; }
  fanout::detail::Atomic<DeviceStreams*>& all_streams() noexcept { return all_streams_; }
  fanout::detail::Atomic<PeerReads*>& peer_reads() noexcept { return peer_reads_; }
  /// Null: from the pool.
  fanout::detail::Atomic<const MemorySource*>& source() noexcept { return source_; }
  /// The block that was released last: see keep_block().
  KeptBlock& kept_block() noexcept { return kept_block_; }
  /// The bytes that tensors, buffers and scratch memory hold.
  HeldBytes& held_bytes() noexcept { return held_bytes_; }

 private:
  const int index_;
  fanout::detail::Atomic<ContextHandle> context_{nullptr};
  fanout::detail::Atomic<const cudaDeviceProp*> properties_{nullptr};
  fanout::detail::Atomic<cudaMemPool_t> pool_{nullptr};
  fanout::detail::Atomic<DeviceStreams*> all_streams_{nullptr};
  fanout::detail::Atomic<PeerReads*> peer_reads_{nullptr};
  fanout::detail::Atomic<const MemorySource*> source_{nullptr};
  KeptBlock kept_block_;
  HeldBytes held_bytes_;
  fanout::detail::ForkSafeMutex making_;
};

struct GpuSlot {
  fanout::detail::Atomic<GpuState*> gpu{nullptr};
};
[[gnu::visibility("default")]] inline GpuSlot gpus[most_gpus]{};

/// The reason why there is no GPU, as text. The runtime's text for a missing driver mentions only versions.
inline std::string text_of_absence(cudaError_t status) {
  return text_of(status) + (status == cudaErrorInsufficientDriver ? "; the driver is too old, or there is none" : "");
}

/// Throws InvalidDeviceId: `Invalid device id`, the indices that exist, and CUDA_VISIBLE_DEVICES if that may hide the
/// device.
[[noreturn]] FANOUT_INLINE void refuse_index(int index, const char* what = "Invalid device id");

/// The GPU of that index among the visible ones. Makes no context. Throws InvalidDeviceId, and CudaError in a forked
/// child.
FANOUT_INLINE GpuState& gpu_at(int index);

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/gpu_state.ipp>
#endif
