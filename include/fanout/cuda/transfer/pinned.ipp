// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/transfer/pinned.hpp>

#include <cstdint>

#include <fanout/cuda/runtime/device_guard.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

void PinnedBlocks::add(PinnedBlock& block) {
  const fanout::detail::ForkSafeLock changing(mutex_);
  const std::size_t position = behind(block.data);
  const std::size_t count = count_.load(fanout::detail::MemoryOrder::acquire);
  if (count == capacity_) grow();
  for (std::size_t i = count; i > position; --i) blocks_[i] = blocks_[i - 1];
  blocks_[position] = &block;
  count_.store(count + 1, fanout::detail::MemoryOrder::release);
}

void PinnedBlocks::remove(const PinnedBlock& block) noexcept {
  const fanout::detail::ForkSafeLock changing(mutex_);
  std::size_t position = behind(block.data);
  while (blocks_[position - 1] != &block) --position;  // an empty adopted block may begin there too
  const std::size_t count = count_.load(fanout::detail::MemoryOrder::acquire);
  for (std::size_t i = position; i < count; ++i) blocks_[i - 1] = blocks_[i];
  count_.store(count - 1, fanout::detail::MemoryOrder::release);
}

bool PinnedBlocks::use(const void* data, std::size_t bytes, StreamRef stream) {
  if (count_.load(fanout::detail::MemoryOrder::acquire) == 0) return false;
  const fanout::detail::ForkSafeLock looking(mutex_);
  PinnedBlock* const block = find(data, bytes);
  if (block == nullptr) return false;
  PinnedBlock::Use* use = block->used_in;
  while (use != nullptr && !(use->stream == stream)) use = use->next;
  if (use == nullptr) use = block->used_in = new PinnedBlock::Use{stream, block->used_in};
  use->is_recorded = false;
  return true;
}

void PinnedBlocks::used(const void* data, std::size_t bytes, StreamRef stream) {
  const fanout::detail::ForkSafeLock looking(mutex_);
  PinnedBlock::Use* use = find(data, bytes)->used_in;
  while (!(use->stream == stream)) use = use->next;
  stream.record(use->end);
  use->is_recorded = true;
}

PinnedBlock* PinnedBlocks::find(const void* data, std::size_t bytes) const noexcept {
  const auto* const begin = static_cast<const std::byte*>(data);
  std::size_t position = behind(begin);
  // Empty adopted blocks may begin at, or inside of, another block.
  while (position != 0 && blocks_[position - 1]->bytes == 0) --position;
  if (position == 0) return nullptr;
  PinnedBlock* const block = blocks_[position - 1];
  const auto offset = static_cast<std::size_t>(begin - block->data);
  return offset > block->bytes || bytes > block->bytes - offset ? nullptr : block;
}

std::size_t PinnedBlocks::behind(const std::byte* address) const noexcept {
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

void PinnedBlocks::grow() {
  const std::size_t capacity = 2 * capacity_ + 8;
  auto** const larger = new PinnedBlock*[capacity];
  for (std::size_t i = 0; i < capacity_; ++i) larger[i] = blocks_[i];
  delete[] blocks_;
  blocks_ = larger;
  capacity_ = capacity;
}

PinnedBlocks& pinned_blocks() {
  PinnedBlocks* blocks = only_pinned_blocks.load(fanout::detail::MemoryOrder::acquire);
  if (blocks == nullptr) [[unlikely]] {
    auto* made = new PinnedBlocks;
    if (only_pinned_blocks.compare_exchange_strong(blocks, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *blocks;
}

void await_end(const PinnedBlock::Use& use) noexcept {
  if (!use.is_recorded) return await_quietly(use.stream);
  try {
    use.end.synchronize();
  } catch (...) {  // the copy may go on, unless its GPU is lost
    await_quietly(use.stream);
  }
}

void release_pinned(const MemorySpace&, void*, std::size_t, void* owner) noexcept {
  auto* block = static_cast<PinnedBlock*>(owner);
  pinned_blocks().remove(*block);
  while (block->used_in != nullptr) {
    const PinnedBlock::Use* use = block->used_in;
    await_end(*use);
    block->used_in = use->next;
    delete use;
  }
  block->free(*block);
  delete block;
}

fanout::detail::Storage storage_of(const PinnedBlock& made, std::size_t bytes) {
  auto* block = new PinnedBlock(made);
  try {
    pinned_blocks().add(*block);
  } catch (...) {
    delete block;
    throw;
  }
  return fanout::detail::Storage({host_memory, &pinned_operations}, block->data, bytes, block);
}

fanout::detail::Storage pinned_storage(std::size_t bytes) {
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

void refuse_pageable(const void* data, GpuState& gpu) {
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

}}}}  // namespace fanout::v0::cuda::detail
