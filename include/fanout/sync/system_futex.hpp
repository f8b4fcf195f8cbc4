// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if defined(__linux__)

#include <fanout/sync/linux_futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {
using SystemFutex = LinuxFutex;
}}}  // namespace fanout::v0::detail

#else

#include <fanout/sync/polled_futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {
using SystemFutex = PolledFutex;
}}}  // namespace fanout::v0::detail

#endif
