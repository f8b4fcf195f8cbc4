// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/prctl.h>
#endif

namespace fanout { inline namespace v0 { namespace detail {

/// Lets timed sleeps of this thread end on time. Otherwise the kernel may add 50 us.
inline void wake_in_time() noexcept {
#if defined(__linux__)
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
}

/// A thread-local variable of this type keeps its library loaded: dlclose does not unload a library while a running
/// thread still has to call a destructor in it.
struct LibraryInUse {
  LibraryInUse() noexcept = default;
  LibraryInUse(const LibraryInUse&) = delete;
  LibraryInUse& operator=(const LibraryInUse&) = delete;
  ~LibraryInUse() { asm volatile(""); }  // so that no compiler drops the destructor as empty
};

#if defined(__linux__)

/// A set of cores in the kernel's form. Null if there are no cores, or no memory.
class CoreMask {
 public:
  explicit CoreMask(const std::vector<int>& cores) noexcept
      : count_(cores.empty() ? 0 : static_cast<std::size_t>(cores.back()) + 1),
        mask_(count_ == 0 ? nullptr : CPU_ALLOC(count_)) {
    if (mask_ == nullptr) return;
    CPU_ZERO_S(bytes(), mask_);
    for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), bytes(), mask_);
  }
  CoreMask(const CoreMask&) = delete;
  CoreMask& operator=(const CoreMask&) = delete;
  ~CoreMask() {
    if (mask_ != nullptr) CPU_FREE(mask_);
  }

  const cpu_set_t* get() const noexcept { return mask_; }
  std::size_t bytes() const noexcept { return CPU_ALLOC_SIZE(count_); }

 private:
  std::size_t count_;
  cpu_set_t* mask_;
};

#endif

/// The attributes of a new thread: it is never joined, and has a stack as large as glibc's.
class ThreadAttributes {
 public:
  ThreadAttributes() noexcept {
    ::pthread_attr_init(&attributes_);
    ::pthread_attr_setdetachstate(&attributes_, PTHREAD_CREATE_DETACHED);
#if !defined(__GLIBC__)
    // musl's threads have 128 KiB, too few for a `forward`. Pages that are not touched cost nothing.
    ::pthread_attr_setstacksize(&attributes_, std::size_t{8} << 20);
#endif
  }
  ThreadAttributes(const ThreadAttributes&) = delete;
  ThreadAttributes& operator=(const ThreadAttributes&) = delete;
  ~ThreadAttributes() { ::pthread_attr_destroy(&attributes_); }

  pthread_attr_t* get() noexcept { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

/// Starts a thread that calls `enter(argument)`. It is never joined, and blocks all signals but those of its own
/// faults. It runs on these cores. If there are none, or the process has lost them meanwhile, it runs where the calling
/// thread may. Returns false if no thread can be started: the system's limit.
inline bool start_thread([[maybe_unused]] const std::vector<int>& cores, void* (*enter)(void*), void* argument,
                         [[maybe_unused]] const std::string& name) noexcept {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // Faults of the thread itself are not blocked: the process would end without the handler that reports them.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread inherits its maker's mask
  pthread_t thread{};
  int failure = -1;
#if defined(__GLIBC__) && defined(__linux__)
  const CoreMask mask(cores);
  if (mask.get() != nullptr) {
    ThreadAttributes bound;
    ::pthread_attr_setaffinity_np(bound.get(), mask.bytes(), mask.get());
    failure = ::pthread_create(&thread, bound.get(), enter, argument);
  }
#endif
  if (failure != 0) {
    ThreadAttributes anywhere;
    failure = ::pthread_create(&thread, anywhere.get(), enter, argument);
#if defined(__linux__) && !defined(__GLIBC__)
    const CoreMask mask(cores);  // only glibc can bind a thread before it runs
    if (failure == 0 && mask.get() != nullptr) ::pthread_setaffinity_np(thread, mask.bytes(), mask.get());
#endif
  }
#if defined(__linux__)
  if (failure == 0) ::pthread_setname_np(thread, name.substr(0, 15).c_str());
#endif
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failure == 0;
}

}}}  // namespace fanout::v0::detail
