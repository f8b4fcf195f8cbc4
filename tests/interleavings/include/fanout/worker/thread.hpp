// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "machine.hpp"

// Replaces the library's header: starts a thread of the modelled machine.

namespace fanout { inline namespace v0 { namespace detail {

inline void wake_in_time() noexcept {}

struct LibraryInUse {};

inline bool start_thread(const std::vector<int>&, void* (*enter)(void*), void* argument, const std::string&) noexcept {
  interleavings::Machine::now()->start(enter, argument, true);
  return true;
}

}}}  // namespace fanout::v0::detail
