// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/pool.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/memory/sanitized.hpp>
#include <fanout/memory/system_block.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void Pool::empty() noexcept {
  for (std::size_t i = classes; i > 0; --i) {
    for (std::size_t n = 0; n < (1 + more_rows) * places; ++n) {  // others may give blocks back meanwhile
      void* const block = take_kept(i - 1);
      if (block == nullptr) break;
      release(block, class_bytes(i - 1));
    }
  }
}

std::size_t Pool::kept(std::size_t first) const noexcept {
  std::size_t bytes = 0;
  for (std::size_t row = first; row < rows; ++row) {
    for (const Place& place : kept_[row]) {
      bytes += place.load(MemoryOrder::relaxed) == 0 ? 0 : class_bytes(class_of(row));
    }
  }
  return bytes;
}

void Pool::give_counted(void* block, std::size_t bytes) noexcept {
  const std::size_t index = size_class(bytes).index;
  if (gifts_.fetch_add(1, MemoryOrder::relaxed) % gifts_between_sweeps == gifts_between_sweeps - 1) sweep();
  if (!keeps_blocks || index >= classes) return release(block, bytes);
  if (put(block, kept_[index])) return;
  for (std::size_t row = more_of(index); row < rows && class_of(row) == index; ++row) {
    if (put(block, kept_[row])) return;
  }
  release(block, bytes);
}

void* Pool::take_kept(std::size_t index) noexcept {
  void* block = take_from(kept_[index]);
  for (std::size_t row = more_of(index); block == nullptr && row < rows && class_of(row) == index; ++row) {
    block = take_from(kept_[row]);
  }
  return block;
}

void* Pool::take_more(std::size_t bytes) noexcept {
  const SizeClass wanted = size_class(bytes);
  if (keeps_blocks && wanted.index < classes) {
    if (void* const kept = take_kept(wanted.index)) return kept;
  }
  void* block = get_system_block(wanted.bytes);
  if (block == nullptr) {
    empty();
    block = get_system_block(wanted.bytes);
  }
  if (block == nullptr) return nullptr;
  if (wanted.index >= first_counted) {
    const std::size_t held = held_.fetch_add(wanted.bytes, MemoryOrder::relaxed) + wanted.bytes;
    if (held > limit()) make_room();  // before a thread touches the new block's pages
  }
  // The bytes behind those asked for must not be touched.
  close_bytes(static_cast<std::byte*>(block) + bytes, wanted.bytes - bytes);
  return block;
}

void Pool::release(void* block, std::size_t bytes) noexcept {
  const SizeClass own = size_class(bytes);
  open_bytes(block, own.bytes);
  release_system_block(block, own.bytes);
  if (own.index >= first_counted) held_.fetch_sub(own.bytes, MemoryOrder::relaxed);
}

void Pool::make_room() noexcept {
  const std::size_t held = held_.load(MemoryOrder::relaxed);
  const std::size_t unused = kept(first_counted);
  const std::size_t used = held > unused ? held - unused : 0;
  if (2 * used > limit()) limit_.store(2 * used, MemoryOrder::relaxed);
  for (std::size_t i = classes; i > first_counted; --i) {
    while (held_.load(MemoryOrder::relaxed) > limit()) {
      void* const block = take_kept(i - 1);
      if (block == nullptr) break;
      release(block, class_bytes(i - 1));
    }
  }
}

void Pool::sweep() noexcept {
  for (std::size_t row = first_counted; row < rows; ++row) {
    for (Place& place : kept_[row]) {
      std::uintptr_t block = place.load(MemoryOrder::relaxed);
      if (block == 0) continue;
      const bool lay_there = block % 2 != 0;
      if (!place.compare_exchange_strong(block, lay_there ? 0 : block + 1, MemoryOrder::acq_rel)) continue;
      if (lay_there) release(block_at(block), class_bytes(class_of(row)));
    }
  }
}

void refuse_bytes(std::size_t bytes) {
  throw OutOfMemory(explain(
      {.what = "out of host memory", .expected = Text() << bytes << " bytes", .advice = "use smaller batches"}));
}

}}}  // namespace fanout::v0::detail
