// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include <sys/mman.h>

#include <fanout/base/cache_line.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The size of a huge page in bytes. One page fault fills it, instead of 512 faults.
inline constexpr std::size_t huge_page = std::size_t{1} << 21;

/// Allocates a block from the system, aligned to `cores_apart`. `bytes` is the size of a size class. Returns null if
/// there is no memory. Large blocks have pages of their own, huge ones if the system has them. They go back to the
/// system when they are released.
inline void* get_system_block(std::size_t bytes) noexcept {
  if (bytes < huge_page) return ::operator new (bytes, std::align_val_t{cores_apart}, std::nothrow);
  const std::size_t room = bytes + huge_page;  // contains an aligned address
  if (room < bytes) return nullptr;
  void* const pages = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(pages);
  const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(first) % huge_page) % huge_page;
  std::byte* const block = first + before;
  if (before != 0) ::munmap(first, before);
  if (before != huge_page) ::munmap(block + bytes, huge_page - before);
#if defined(MADV_HUGEPAGE)
  ::madvise(block, bytes / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  return block;
}

/// Releases a block that get_system_block() returned for so many bytes.
inline void release_system_block(void* block, std::size_t bytes) noexcept {
  if (bytes < huge_page) {
    ::operator delete (block, std::align_val_t{cores_apart});
  } else {
    ::munmap(block, bytes);
  }
}

}}}  // namespace fanout::v0::detail
