// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <string>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What Linux knows of threads beyond POSIX.
struct LinuxThreads {
  /// The cores that this process may use: the affinity mask of its first thread. Empty if the kernel does not tell.
  [[gnu::cold]] FANOUT_INLINE static std::vector<int> process_cores();

  /// Binds a thread that is made with these attributes, before it runs. Returns false if there are no cores, or if the
  /// C library cannot do it: musl.
  [[gnu::cold]] FANOUT_INLINE static bool bind(pthread_attr_t& attributes, const std::vector<int>& cores) noexcept;

  /// Binds a thread that runs. Does nothing if there are no cores, or if the process has lost them meanwhile.
  [[gnu::cold]] FANOUT_INLINE static void bind(pthread_t thread, const std::vector<int>& cores) noexcept;

  /// Names a thread. The kernel keeps 15 characters.
  [[gnu::cold]] FANOUT_INLINE static void name(pthread_t thread, const std::string& name) noexcept;

  /// Lets timed sleeps of the calling thread end on time. Otherwise the kernel may add 50 us.
  [[gnu::cold]] FANOUT_INLINE static void wake_in_time() noexcept;

  /// The core on which the calling thread runs now.
  static int current_core() noexcept { return ::sched_getcpu(); }
  /// Moves the calling thread to the first of these cores that its affinity mask has. The mask stays as it is, so the
  /// kernel may move the thread again. Does nothing if the mask has none of them. Moves a thread once a millisecond.
  [[gnu::cold]] FANOUT_INLINE static void move_to(const std::vector<int>& cores) noexcept;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/worker/linux_threads.ipp>
#endif
