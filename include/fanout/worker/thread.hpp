// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <string>
#include <vector>

#include <pthread.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/worker/system_threads.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Lets timed sleeps of this thread end on time. Otherwise the kernel may add 50 us.
inline void wake_in_time() noexcept { SystemThreads::wake_in_time(); }

/// A thread-local variable of this type keeps its library loaded: dlclose does not unload a library while a running
/// thread still has to call a destructor in it.
struct LibraryInUse {
  LibraryInUse() noexcept = default;
  LibraryInUse(const LibraryInUse&) = delete;
  LibraryInUse& operator=(const LibraryInUse&) = delete;
  ~LibraryInUse() { asm volatile(""); }  // so that no compiler drops the destructor as empty
};

/// Starts a thread that calls `enter(argument)`, and blocks all signals but those of its own faults. It starts in the
/// standard floating-point modes, and runs on these cores. If there are none, or the process has lost them meanwhile,
/// it runs where the calling thread may. It is never joined, unless `joined` is not null: then that is set to the
/// thread, which the caller must join. Returns false if no thread can be started: the system's limit.
[[gnu::cold]] FANOUT_INLINE bool start_thread(const std::vector<int>& cores, void* (*enter)(void*), void* argument,
                                              const std::string& name, pthread_t* joined = nullptr) noexcept;

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/worker/thread.ipp>
#endif
