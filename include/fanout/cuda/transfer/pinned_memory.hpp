// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/transfer/pinned.hpp>
#include <fanout/memory/host_allocator.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

namespace detail {

/// Keeps the page-locked memory of destroyed tensors for later ones of nearly the same size. cudaHostAlloc and
/// cudaFreeHost take long.
class PinnedCache {
 public:
  /// Memory that nobody uses, of at least `bytes` bytes. Throws OutOfMemory and CudaError.
  FANOUT_INLINE PinnedBlock take(std::size_t bytes);

  /// Frees what nobody uses.
  FANOUT_INLINE void trim() noexcept;

 private:
  struct Pages {
    std::byte* data;
    std::size_t bytes;
    GpuState& gpu;
    PinnedCache& cache;
    Pages* next = nullptr;
  };

  void keep(Pages& pages) noexcept {
    const fanout::detail::ForkSafeLock keeping(mutex_);
    pages.next = kept_;
    kept_ = &pages;
  }

  /// Null if none fits. One that is more than twice as large stays, for a larger tensor.
  FANOUT_INLINE Pages* kept_for(std::size_t bytes) noexcept;

  FANOUT_INLINE Pages* make(std::size_t bytes);

  FANOUT_INLINE void* allocate(std::size_t bytes, GpuState& gpu);

  fanout::detail::ForkSafeMutex mutex_;
  Pages* kept_ = nullptr;
};

/// Never destroyed, since tensors may outlive main().
[[gnu::visibility("default")]] inline constinit PinnedCache pinned_cache;
static_assert(std::is_trivially_destructible_v<PinnedCache>);

FANOUT_INLINE fanout::detail::Storage kept_pinned_storage(std::size_t bytes);

}  // namespace detail

/// Page-locked host memory for the batches of a Loader, `{.batch = 128, .pin = cuda::pinned_memory}`, and for
/// collate(). The elements of a new tensor are not set. A destroyed tensor's memory is kept for the next one, until
/// empty_cache(). The destructor waits for GPUs that still copy from it. Copies of the tensor are ordinary tensors.
/// Without a CUDA device, this is ordinary memory. Allocating throws OutOfMemory and CudaError.
inline constexpr backend::HostAllocator pinned_memory{&detail::kept_pinned_storage};

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/transfer/pinned_memory.ipp>
#endif
