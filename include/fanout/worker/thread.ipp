// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/worker/thread.hpp>

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <pthread.h>

#include <fanout/sync/floating_point_modes.hpp>
#include <fanout/worker/system_threads.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The attributes of a new thread: it has a stack of 8 MiB at least, as glibc's threads have.
class ThreadAttributes {
 public:
  explicit ThreadAttributes(bool joined) noexcept {
    ::pthread_attr_init(&attributes_);
    ::pthread_attr_setdetachstate(&attributes_, joined ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
    // musl's threads have 128 KiB, too few for a `forward`. Pages that are not touched cost nothing.
    constexpr std::size_t least = std::size_t{8} << 20;
    std::size_t stack = 0;
    if (::pthread_attr_getstacksize(&attributes_, &stack) == 0 && stack < least) {
      ::pthread_attr_setstacksize(&attributes_, least);
    }
  }
  ThreadAttributes(const ThreadAttributes&) = delete;
  ThreadAttributes& operator=(const ThreadAttributes&) = delete;
  ~ThreadAttributes() { ::pthread_attr_destroy(&attributes_); }

  pthread_attr_t* get() noexcept { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

bool start_thread(const std::vector<int>& cores, void* (*enter)(void*), void* argument, const std::string& name,
                  pthread_t* joined) noexcept {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // Faults of the thread itself are not blocked: the process would end without the handler that reports them.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread inherits its maker's mask, and its maker's modes
  const FloatingPointScope scope(FloatingPointModes::standard());
  pthread_t thread{};
  ThreadAttributes attributes(joined != nullptr);
  const bool bound = SystemThreads::bind(*attributes.get(), cores);
  bool started = ::pthread_create(&thread, attributes.get(), enter, argument) == 0;
  if (!started && bound) {  // the process may have lost the cores meanwhile
    ThreadAttributes anywhere(joined != nullptr);
    started = ::pthread_create(&thread, anywhere.get(), enter, argument) == 0;
  }
  if (started) {
    if (!bound) SystemThreads::bind(thread, cores);
    SystemThreads::name(thread, name);
    if (joined != nullptr) *joined = thread;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}}}  // namespace fanout::v0::detail
