// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A shared library that is loaded before all others: counts the allocations of all threads, whoever makes them.

#include <atomic>
#include <cerrno>
#include <cstddef>

#include <dlfcn.h>
#include <sys/mman.h>

namespace {
std::atomic<long> allocations = 0;
}

extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;

/// Of the process so far: malloc and its kin, which operator new comes to, and mmap.
long benchmarks_allocations() noexcept { return allocations.load(std::memory_order_relaxed); }

void* malloc(std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  *result = memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  using Map = void*(void*, std::size_t, int, int, int, off_t);
  static Map* const real = reinterpret_cast<Map*>(dlsym(RTLD_NEXT, "mmap"));
  allocations.fetch_add(1, std::memory_order_relaxed);
  return real(at, bytes, protection, flags, file, offset);
}
}
