// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/prctl.h>
#endif

namespace fanout::inline v0 {

namespace detail {

/// Lets the sleeps of this thread end when they are to end; the kernel may add 50 us otherwise.
inline void wake_in_time() noexcept {
#if defined(__linux__)
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
}

/// Starts a thread that calls `enter(argument)`, is never joined, and blocks all signals but those of its own faults.
/// It runs on these cores; if there are none or they were taken from the process meanwhile, where the calling thread
/// may. False if none can be started: the system's limit.
inline bool start_thread(const std::vector<int>& cores, void* (*enter)(void*), void* argument,
                         [[maybe_unused]] const std::string& name) noexcept {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // What a thread does to itself is not blocked: the process would end without the handler that is to report it.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread inherits its maker's mask
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  int failure = -1;
#if defined(__linux__)
  const std::size_t highest = cores.empty() ? 0 : static_cast<std::size_t>(cores.back());
  if (cpu_set_t* mask = cores.empty() ? nullptr : CPU_ALLOC(highest + 1)) {
    const std::size_t bytes = CPU_ALLOC_SIZE(highest + 1);
    CPU_ZERO_S(bytes, mask);
    for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), bytes, mask);
    ::pthread_attr_setaffinity_np(&attributes, bytes, mask);
    failure = ::pthread_create(&thread, &attributes, enter, argument);
    CPU_FREE(mask);
    ::pthread_attr_destroy(&attributes);
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  }
#endif
  if (failure != 0) failure = ::pthread_create(&thread, &attributes, enter, argument);
  ::pthread_attr_destroy(&attributes);
#if defined(__linux__)
  if (failure == 0) ::pthread_setname_np(thread, name.substr(0, 15).c_str());
#endif
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failure == 0;
}

}  // namespace detail
}  // namespace fanout::inline v0
