// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>

namespace fanout::inline v0 {

/// The user's model, and how often it was changed.
template <class M>
struct Original {
  M model;
  Atomic<std::uint64_t> version{0};
};

}  // namespace fanout::inline v0
