// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/transfer/pinned_memory.hpp>

#include <fanout/cuda/runtime/page_locked.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

PinnedBlock PinnedCache::take(std::size_t bytes) {
  Pages* pages = kept_for(bytes);
  if (pages == nullptr) pages = make(bytes);
  const auto keep = [](PinnedBlock& block) noexcept {
    auto& own = *static_cast<Pages*>(block.deleter);
    own.cache.keep(own);
  };
  return {pages->data, pages->bytes, pages->gpu, keep, pages};
}

void PinnedCache::trim() noexcept {
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

PinnedCache::Pages* PinnedCache::kept_for(std::size_t bytes) noexcept {
  const fanout::detail::ForkSafeLock taking(mutex_);
  for (Pages** place = &kept_; *place != nullptr; place = &(*place)->next) {
    Pages* const pages = *place;
    if (pages->bytes < bytes || pages->bytes / 2 > bytes || !pages->gpu.usable()) continue;
    *place = pages->next;
    return pages;
  }
  return nullptr;
}

PinnedCache::Pages* PinnedCache::make(std::size_t bytes) {
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

void* PinnedCache::allocate(std::size_t bytes, GpuState& gpu) {
  try {
    return allocate_page_locked(bytes, gpu);
  } catch (const OutOfMemory&) {
    trim();
    return allocate_page_locked(bytes, gpu);
  }
}

fanout::detail::Storage kept_pinned_storage(std::size_t bytes) {
  if (bytes == 0 || count_gpus().count == 0) return fanout::detail::Storage(backend::Memory{}, bytes);
  PinnedBlock block = pinned_cache.take(bytes);
  try {
    return storage_of(block, bytes);
  } catch (...) {
    block.free(block);
    throw;
  }
}

}}}}  // namespace fanout::v0::cuda::detail
