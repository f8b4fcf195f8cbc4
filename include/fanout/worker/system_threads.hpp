// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if defined(__linux__)

#include <fanout/worker/linux_threads.hpp>

namespace fanout { inline namespace v0 { namespace detail {
using SystemThreads = LinuxThreads;
}}}  // namespace fanout::v0::detail

#else

#include <fanout/worker/posix_threads.hpp>

namespace fanout { inline namespace v0 { namespace detail {
using SystemThreads = PosixThreads;
}}}  // namespace fanout::v0::detail

#endif
