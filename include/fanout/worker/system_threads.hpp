// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include <pthread.h>

#include <fanout/base/requirements.hpp>
#if defined(__linux__)
#include <fanout/worker/linux_threads.hpp>
#endif

namespace fanout { inline namespace v0 { namespace detail {

/// Where nothing is known of threads beyond POSIX: they are not bound, and have no names.
struct PosixThreads {
  static std::vector<int> process_cores() { return {}; }
  static bool bind(pthread_attr_t&, const std::vector<int>&) noexcept { return false; }
  static void bind(pthread_t, const std::vector<int>&) noexcept {}
  static void name(pthread_t, const std::string&) noexcept {}
  static void wake_in_time() noexcept {}
  static int current_core() noexcept { return -1; }
  static void move_to(const std::vector<int>&) noexcept {}
};

#if defined(__linux__)
using SystemThreads = LinuxThreads;
#else
using SystemThreads = PosixThreads;
#endif

}}}  // namespace fanout::v0::detail
