// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <fanout/base/error.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/page_locked.hpp>
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
  PinnedBlock take(std::size_t bytes) {
    Pages* pages = kept_for(bytes);
    if (pages == nullptr) pages = make(bytes);
    const auto keep = [](PinnedBlock& block) noexcept {
      auto& own = *static_cast<Pages*>(block.deleter);
      own.cache.keep(own);
    };
    return {pages->data, pages->bytes, pages->gpu, keep, pages};
  }

  /// Frees what nobody uses.
  void trim() noexcept {
    Pages* free = nullptr;
    {
      const fanout::detail::ForkSafeLock taking(mutex_);
      free = kept_;
      kept_ = nullptr;
    }
    while (free != nullptr) {
      const Pages* const pages = free;
      free = pages->next;
      release_page_locked(pages->data, pages->gpu);
      delete pages;
    }
  }

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
  Pages* kept_for(std::size_t bytes) noexcept {
    const fanout::detail::ForkSafeLock taking(mutex_);
    for (Pages** place = &kept_; *place != nullptr; place = &(*place)->next) {
      Pages* const pages = *place;
      if (pages->bytes < bytes || pages->bytes / 2 > bytes || !pages->gpu.usable()) continue;
      *place = pages->next;
      return pages;
    }
    return nullptr;
  }

  Pages* make(std::size_t bytes) {
    GpuState& gpu = any_gpu();
    auto* const pages = new Pages{nullptr, bytes, gpu, *this};
    try {
      pages->data = static_cast<std::byte*>(allocate(bytes, gpu));
    } catch (...) {
      delete pages;
      throw;
    }
    return pages;
  }

  void* allocate(std::size_t bytes, GpuState& gpu) {
    try {
      return allocate_page_locked(bytes, gpu);
    } catch (const OutOfMemory&) {
      trim();
      return allocate_page_locked(bytes, gpu);
    }
  }

  fanout::detail::ForkSafeMutex mutex_;
  Pages* kept_ = nullptr;
};

/// Never destroyed, since tensors may outlive main().
[[gnu::visibility("default")]] inline constinit PinnedCache pinned_cache;
static_assert(std::is_trivially_destructible_v<PinnedCache>);

inline fanout::detail::Storage kept_pinned_storage(std::size_t bytes) {
  if (bytes == 0 || count_gpus().count == 0) return fanout::detail::Storage(backend::Memory{}, bytes);
  PinnedBlock block = pinned_cache.take(bytes);
  try {
    return storage_of(block, bytes);
  } catch (...) {
    block.free(block);
    throw;
  }
}

}  // namespace detail

/// Page-locked host memory for the batches of a Loader, `{.batch = 128, .pin = cuda::pinned_memory}`, and for
/// collate(). The elements of a new tensor are not set. A destroyed tensor's memory is kept for the next one, until
/// empty_cache(). The destructor waits for GPUs that still copy from it. Copies of the tensor are ordinary tensors.
/// Without a CUDA device, this is ordinary memory. Allocating throws OutOfMemory and CudaError.
inline constexpr backend::HostAllocator pinned_memory{&detail::kept_pinned_storage};

}}}  // namespace fanout::v0::cuda
