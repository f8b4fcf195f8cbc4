// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <atomic>

namespace fanout { inline namespace v0 { namespace detail {

// Names of our own, so that tests can put atomics in their place that try all interleavings of threads.

template <class T>
using Atomic = std::atomic<T>;
using MemoryOrder = std::memory_order;

}}}  // namespace fanout::v0::detail
