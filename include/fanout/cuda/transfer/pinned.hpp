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
#include <fanout/cuda/runtime/device_guard.hpp>
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
  };
  Use* used_in = nullptr;
};

/// All pinned memory of the process, ordered by address. Copies ask it if their host memory is pinned. It is a plain
/// array: a vector would add 27 million instructions to what a file pays for <fanout/cuda.hpp>, which is 5 % (g++ 12).
class PinnedBlocks {
 public:
  void add(PinnedBlock& block) {
    const fanout::detail::ForkSafeLock changing(mutex_);
    const std::size_t position = behind(block.data);
    const std::size_t count = count_.load(fanout::detail::MemoryOrder::acquire);
    if (count == capacity_) grow();
    for (std::size_t i = count; i > position; --i) blocks_[i] = blocks_[i - 1];
    blocks_[position] = &block;
    count_.store(count + 1, fanout::detail::MemoryOrder::release);
  }

  void remove(const PinnedBlock& block) noexcept {
    const fanout::detail::ForkSafeLock changing(mutex_);
    std::size_t position = behind(block.data);
    while (blocks_[position - 1] != &block) --position;  // an empty adopted block may begin there too
    const std::size_t count = count_.load(fanout::detail::MemoryOrder::acquire);
    for (std::size_t i = position; i < count; ++i) blocks_[i - 1] = blocks_[i];
    count_.store(count - 1, fanout::detail::MemoryOrder::release);
  }

  /// True if these bytes are pinned memory. Then they are freed only after all work that is in the stream by then.
  bool use(const void* data, std::size_t bytes, StreamRef stream) {
    if (count_.load(fanout::detail::MemoryOrder::acquire) == 0) return false;
    const auto* begin = static_cast<const std::byte*>(data);
    const fanout::detail::ForkSafeLock looking(mutex_);
    std::size_t position = behind(begin);
    // Empty adopted blocks may begin at, or inside of, another block.
    while (position != 0 && blocks_[position - 1]->bytes == 0) --position;
    if (position == 0) return false;
    PinnedBlock& block = *blocks_[position - 1];
    const auto offset = static_cast<std::size_t>(begin - block.data);
    if (offset > block.bytes || bytes > block.bytes - offset) return false;
    for (const PinnedBlock::Use* use = block.used_in; use != nullptr; use = use->next) {
      if (use->stream == stream) return true;
    }
    block.used_in = new PinnedBlock::Use{stream, block.used_in};
    return true;
  }

 private:
  /// The number of blocks that begin at or before the address.
  std::size_t behind(const std::byte* address) const noexcept {
    std::size_t low = 0;
    std::size_t high = count_.load(fanout::detail::MemoryOrder::acquire);
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (reinterpret_cast<std::uintptr_t>(blocks_[middle]->data) <= reinterpret_cast<std::uintptr_t>(address)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  void grow() {
    const std::size_t capacity = 2 * capacity_ + 8;
    auto** const larger = new PinnedBlock*[capacity];
    for (std::size_t i = 0; i < capacity_; ++i) larger[i] = blocks_[i];
    delete[] blocks_;
    blocks_ = larger;
    capacity_ = capacity;
  }

  fanout::detail::ForkSafeMutex mutex_;
  PinnedBlock** blocks_ = nullptr;
  std::size_t capacity_ = 0;
  fanout::detail::Atomic<std::size_t> count_{0};
};

[[gnu::visibility("default")]] inline fanout::detail::Atomic<PinnedBlocks*> only_pinned_blocks{nullptr};

/// The blocks: made at first use, and never destroyed, since tensors may outlive main().
inline PinnedBlocks& pinned_blocks() {
  PinnedBlocks* blocks = only_pinned_blocks.load(fanout::detail::MemoryOrder::acquire);
  if (blocks == nullptr) [[unlikely]] {
    auto* made = new PinnedBlocks;
    if (only_pinned_blocks.compare_exchange_strong(blocks, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *blocks;
}

inline void release_pinned(const MemorySpace&, void*, std::size_t, void* owner) noexcept {
  auto* block = static_cast<PinnedBlock*>(owner);
  pinned_blocks().remove(*block);
  while (block->used_in != nullptr) {
    const PinnedBlock::Use* use = block->used_in;
    const StreamRef stream = use->stream;
    const QuietGuard entered(*gpus[stream.device()].gpu.load(fanout::detail::MemoryOrder::acquire));
    if (entered.entered()) note(::cudaStreamSynchronize(stream.get()), stream.device());
    block->used_in = use->next;
    delete use;
  }
  block->free(*block);
  delete block;
}

/// Copies of pinned tensors are ordinary host memory. Only what the user asks for is pinned, since the system cannot
/// swap it out.
inline constexpr backend::MemoryOperations pinned_operations{
    backend::host_memory_operations.allocate, &release_pinned, backend::host_memory_operations.copy,
    backend::host_memory_operations.clear, &backend::host_memory_operations};

/// The first `bytes` of a block, whose memory it owns. If this throws, the memory has not been freed.
inline fanout::detail::Storage storage_of(const PinnedBlock& made, std::size_t bytes) {
  auto* block = new PinnedBlock(made);
  try {
    pinned_blocks().add(*block);
  } catch (...) {
    delete block;
    throw;
  }
  return fanout::detail::Storage({host_memory, &pinned_operations}, block->data, bytes, block);
}

inline fanout::detail::Storage pinned_storage(std::size_t bytes) {
  if (bytes == 0 || count_gpus().count == 0) return fanout::detail::Storage(backend::Memory{}, bytes);
  GpuState& gpu = any_gpu();
  PinnedBlock block{static_cast<std::byte*>(allocate_page_locked(bytes, gpu)), bytes, gpu,
                    [](PinnedBlock& own) noexcept { release_page_locked(own.data, own.gpu); }};
  try {
    return storage_of(block, bytes);
  } catch (...) {
    block.free(block);
    throw;
  }
}

/// Throws InvalidArgument unless the memory is page-locked.
inline void refuse_pageable(const void* data, GpuState& gpu) {
  const DeviceGuard entered(gpu);
  cudaPointerAttributes attributes{};
  const cudaError_t status = ::cudaPointerGetAttributes(&attributes, data);
  if (status == cudaErrorInvalidValue) {
    note(status, gpu.index());  // older runtimes return this for unknown pointers
  } else {
    check(status, "cudaPointerGetAttributes", gpu.index());
    if (attributes.type == cudaMemoryTypeHost) return;
  }
  throw InvalidArgument(explain({.what = "memory to be taken over as pinned",
                                 .expected = "page-locked host memory, of cudaHostAlloc or cudaHostRegister",
                                 .found = "other memory",
                                 .advice = "adopt it with Tensor::adopt, or copy it with fanout::cuda::pin"}));
}

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
