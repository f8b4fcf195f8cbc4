// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include <sys/mman.h>

#include <fanout/base/cache_line.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Pages as large as the system has them. A fault fills one, where else it takes 512 faults.
inline constexpr std::size_t huge_page = std::size_t{1} << 21;

/// Bytes from the system, as many as a block of some class has, aligned to `cores_apart`; null if there are none. Those
/// of many bytes are pages of their own, in huge ones where the system has such, and go back to it when they are
/// released.
inline void* get_system_block(std::size_t bytes) noexcept {
  if (bytes < huge_page) return ::operator new (bytes, std::align_val_t{cores_apart}, std::nothrow);
  const std::size_t room = bytes + huge_page;  // in which there is an address that is aligned
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

/// Gives back what get_system_block() returned for so many bytes.
inline void release_system_block(void* block, std::size_t bytes) noexcept {
  if (bytes < huge_page) {
    ::operator delete (block, std::align_val_t{cores_apart});
  } else {
    ::munmap(block, bytes);
  }
}

}}}  // namespace fanout::v0::detail
