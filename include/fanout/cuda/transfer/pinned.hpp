// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include <cuda_runtime_api.h>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/page_locked.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

namespace detail {

/// The pinned memory of one tensor, the function that frees it, and the streams in which GPUs use it.
struct PinnedBlock {
  std::byte* data;
  std::size_t bytes;
  GpuState& gpu;
  void (*free)(PinnedBlock&) noexcept;
  void* deleter = nullptr;  // of adopted memory; of cached memory, its KeptPages
  struct Use {
    StreamRef stream;
    Use* next;
    Event end{};
    bool is_recorded = false;  ///< if not, the use is not over before all that is in the stream
  };
  Use* used_in = nullptr;
};

/// All pinned memory of the process, ordered by address. Copies ask it if their host memory is pinned. It is a plain
/// array: a vector would add 27 million instructions to what a file pays for <fanout/cuda.hpp>, which is 5 % (g++ 12).
class PinnedBlocks {
 public:
  FANOUT_INLINE void add(PinnedBlock& block);

  FANOUT_INLINE void remove(const PinnedBlock& block) noexcept;

  /// True if these bytes are pinned memory. Then they are freed only after all work that is in the stream by then, or
  /// that was there at used().
  FANOUT_INLINE bool use(const void* data, std::size_t bytes, StreamRef stream);

  /// Call this when the work that uses the bytes is in the stream. Throws CudaError.
  FANOUT_INLINE void used(const void* data, std::size_t bytes, StreamRef stream);

 private:
  /// The block that these bytes lie in; null if there is none. The mutex must be locked.
  FANOUT_INLINE PinnedBlock* find(const void* data, std::size_t bytes) const noexcept;

  /// The number of blocks that begin at or before the address.
  FANOUT_INLINE std::size_t behind(const std::byte* address) const noexcept;

  FANOUT_INLINE void grow();

  fanout::detail::ForkSafeMutex mutex_;
  PinnedBlock** blocks_ = nullptr;
  std::size_t capacity_ = 0;
  fanout::detail::Atomic<std::size_t> count_{0};
};

[[gnu::visibility("default")]] inline fanout::detail::Atomic<PinnedBlocks*> only_pinned_blocks{nullptr};

/// The blocks: made at first use, and never destroyed, since tensors may outlive main().
FANOUT_INLINE PinnedBlocks& pinned_blocks();

/// Waits until the use is over. Ignores errors.
FANOUT_INLINE void await_end(const PinnedBlock::Use& use) noexcept;

FANOUT_INLINE void release_pinned(const MemorySpace&, void*, std::size_t, void* owner) noexcept;

/// Copies of pinned tensors are ordinary host memory. Only what the user asks for is pinned, since the system cannot
/// swap it out.
inline constexpr backend::MemoryOperations pinned_operations{
    backend::host_memory_operations.allocate, &release_pinned, backend::host_memory_operations.copy,
    backend::host_memory_operations.clear, &backend::host_memory_operations};

/// The first `bytes` of a block, whose memory it owns. If this throws, the memory has not been freed.
FANOUT_INLINE fanout::detail::Storage storage_of(const PinnedBlock& made, std::size_t bytes);

FANOUT_INLINE fanout::detail::Storage pinned_storage(std::size_t bytes);

/// Throws InvalidArgument unless the memory is page-locked.
FANOUT_INLINE void refuse_pageable(const void* data, GpuState& gpu);

}  // namespace detail

/// A tensor in page-locked host memory, all elements zero: `pinned<float>(rows, columns)`. GPUs copy it without
/// staging. A copy to a GPU may go on after the call that asked for it: wait for the GPU before you change the tensor.
/// The tensor may be destroyed at any time. Copies of the tensor are ordinary tensors. Without a CUDA device it is an
/// ordinary tensor. If no GPU is in use yet, a context is made on GPU 0. Throws ShapeMismatch, OutOfMemory and
/// CudaError.
template <class T, std::integral... I>
  requires(sizeof...(I) > 0)
Tensor<T, sizeof...(I)> pinned(I... extents) {
  const auto shape = fanout::detail::checked_extents(sizeof(T), extents...);
  Tensor<T, sizeof...(I)> tensor(detail::pinned_storage(shape.size() * sizeof(T)), shape);
  if (!tensor.empty()) std::memset(static_cast<void*>(tensor.data()), 0, tensor.storage().bytes());
  return tensor;
}

/// Copies an array in host memory into page-locked memory: see pinned(). Throws DeviceMismatch for other memory, and
/// what pinned() throws.
template <class T, std::size_t R>
Tensor<std::remove_const_t<T>, R> pin(View<T, R> view) {
  if (!(view.space() == host_memory)) {
    throw DeviceMismatch(explain({.what = "an array outside of host memory cannot be pinned",
                                  .expected = to_string(host_memory),
                                  .found = to_string(view.space()),
                                  .advice = "copy it to the host first"}));
  }
  const std::size_t bytes = view.size() * sizeof(T);
  Tensor<std::remove_const_t<T>, R> tensor(detail::pinned_storage(bytes), view.extents());
  if (bytes != 0) std::memcpy(static_cast<void*>(tensor.data()), view.data(), bytes);
  return tensor;
}
template <class T, std::size_t R>
Tensor<T, R> pin(const Tensor<T, R>& tensor) {
  return pin(tensor.view());
}

/// Takes ownership of page-locked host memory of cudaHostAlloc or cudaHostRegister; GPUs copy it as that of pinned().
/// Calls `deleter(pointer)` once: when the tensor has released the memory and no copy uses it any more, or before this
/// throws. Throws InvalidArgument for other memory, ShapeMismatch and CudaError.
template <class T, class Deleter, std::integral... I>
  requires(sizeof...(I) > 0 && std::invocable<Deleter&, T*>)
Tensor<T, sizeof...(I)> adopt_pinned(T* pointer, Deleter deleter, I... extents) {
  try {
    const auto shape = fanout::detail::checked_extents(sizeof(T), extents...);
    detail::GpuState& gpu = detail::any_gpu();
    detail::refuse_pageable(pointer, gpu);
    struct Owned {
      Deleter deleter;
    };
    auto* owned = new Owned{deleter};
    try {
      return {detail::storage_of({reinterpret_cast<std::byte*>(pointer), shape.size() * sizeof(T), gpu,
                                  [](detail::PinnedBlock& block) noexcept {
                                    auto* mine = static_cast<Owned*>(block.deleter);
                                    mine->deleter(static_cast<T*>(static_cast<void*>(block.data)));
                                    delete mine;
                                  },
                                  owned},
                                 shape.size() * sizeof(T)),
              shape};
    } catch (...) {
      delete owned;
      throw;
    }
  } catch (...) {
    deleter(pointer);
    throw;
  }
}

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/transfer/pinned.ipp>
#endif
