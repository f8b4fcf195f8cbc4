// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts what a program asks of the C library: it defines the functions themselves, so that its own calls and those of
// all shared libraries but the C library come here first. Included by one unit of a program, which is compiled with
// -fno-builtin, so that copies are calls and not instructions.

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fanout_test {

/// Of all threads since the beginning.
struct Interposed {
  std::atomic<long> allocations = 0;   ///< malloc and its kin
  std::atomic<long> news = 0;          ///< operator new, each of which is one of `allocations` too
  std::atomic<long> mappings = 0;      ///< mmap, mremap, brk, sbrk, madvise
  std::atomic<long> copied = 0;        ///< bytes that were copied or set
  std::atomic<long> locks = 0;         ///< of pthreads
  std::atomic<long> system_calls = 0;  ///< by syscall(), as futexes are; and sched_yield, nanosleep
};
inline constinit Interposed interposed;

template <class Function>
Function* next(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// memmove for any overlap, of the program's own: dlsym may copy, too.
inline void* move_bytes(void* to, const void* from, std::size_t n) noexcept {
  auto* a = static_cast<char*>(to);
  const auto* b = static_cast<const char*>(from);
#if defined(__x86_64__)
  if (a <= b || a >= b + n) {
    asm volatile("rep movsb" : "+D"(a), "+S"(b), "+c"(n) : : "memory");
    return to;
  }
#endif
  // A step that the compiler cannot see through, or it would make a call of memmove of this.
  for (std::size_t i = 0; a <= b && i < n; ++i) {
    a[i] = b[i];
    asm volatile("" ::: "memory");
  }
  for (std::size_t i = n; a > b && i > 0; --i) {
    a[i - 1] = b[i - 1];
    asm volatile("" ::: "memory");
  }
  return to;
}

}  // namespace fanout_test

using fanout_test::interposed;

extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;

void* malloc(std::size_t bytes) noexcept {
  ++interposed.allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++interposed.allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) noexcept {
  ++interposed.allocations;
  return __libc_realloc(old, bytes);
}
void* reallocarray(void* old, std::size_t count, std::size_t bytes) noexcept {
  ++interposed.allocations;
  return __libc_realloc(old, count * bytes);  // nobody here asks for more than there can be
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  ++interposed.allocations;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  ++interposed.allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  ++interposed.allocations;
  *result = __libc_memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
void* valloc(std::size_t bytes) noexcept { return memalign(4096, bytes); }
void* pvalloc(std::size_t bytes) noexcept { return memalign(4096, (bytes + 4095) / 4096 * 4096); }

void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static const auto real = fanout_test::next<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
  ++interposed.mappings;
  return real(at, bytes, protection, flags, file, offset);
}
int madvise(void* at, std::size_t bytes, int advice) noexcept {
  static const auto real = fanout_test::next<int(void*, std::size_t, int)>("madvise");
  ++interposed.mappings;
  return real(at, bytes, advice);
}
int munmap(void* at, std::size_t bytes) noexcept {
  static const auto real = fanout_test::next<int(void*, std::size_t)>("munmap");
  ++interposed.mappings;
  return real(at, bytes);
}
int brk(void* end) noexcept {
  static const auto real = fanout_test::next<int(void*)>("brk");
  ++interposed.mappings;
  return real(end);
}
void* sbrk(std::intptr_t more) noexcept {
  static const auto real = fanout_test::next<void*(std::intptr_t)>("sbrk");
  ++interposed.mappings;
  return real(more);
}

void* memcpy(void* to, const void* from, std::size_t n) noexcept {
  interposed.copied += static_cast<long>(n);
  return fanout_test::move_bytes(to, from, n);
}
void* memmove(void* to, const void* from, std::size_t n) noexcept {
  interposed.copied += static_cast<long>(n);
  return fanout_test::move_bytes(to, from, n);
}
void* memset(void* to, int value, std::size_t n) noexcept {
  interposed.copied += static_cast<long>(n);
  auto* bytes = static_cast<char*>(to);
  for (std::size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<char>(value);
    asm volatile("" ::: "memory");
  }
  return to;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto real = fanout_test::next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  ++interposed.locks;
  return real(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  static const auto real = fanout_test::next<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  ++interposed.locks;
  return real(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static const auto real = fanout_test::next<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  ++interposed.locks;
  return real(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static const auto real = fanout_test::next<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  ++interposed.locks;
  return real(lock);
}
int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  static const auto real = fanout_test::next<int(pthread_spinlock_t*)>("pthread_spin_lock");
  ++interposed.locks;
  return real(lock);
}

long syscall(long number, ...) noexcept {
  static const auto real = fanout_test::next<long(long, ...)>("syscall");
  ++interposed.system_calls;
  std::va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
int sched_yield() noexcept {
  static const auto real = fanout_test::next<int()>("sched_yield");
  ++interposed.system_calls;
  return real();
}
int nanosleep(const timespec* time, timespec* left) {
  static const auto real = fanout_test::next<int(const timespec*, timespec*)>("nanosleep");
  ++interposed.system_calls;
  return real(time, left);
}
}

void* operator new(std::size_t bytes) {
  ++interposed.news;
  if (void* const result = malloc(bytes)) return result;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++interposed.news;
  if (void* const result = memalign(static_cast<std::size_t>(alignment), bytes)) return result;
  throw std::bad_alloc();
}
void operator delete(void* old) noexcept { free(old); }
void operator delete(void* old, std::size_t) noexcept { free(old); }
void operator delete(void* old, std::align_val_t) noexcept { free(old); }
void operator delete(void* old, std::size_t, std::align_val_t) noexcept { free(old); }
