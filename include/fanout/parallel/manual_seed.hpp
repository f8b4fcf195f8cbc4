// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

[[gnu::visibility("default")]] inline Atomic<std::uint64_t> process_seed{0};

}  // namespace detail

/// Sets the seed of all Options that are made from now on without a seed, in this process, and of models that are made
/// without Options. It is 0 before. Options and models that exist keep theirs, so a run that makes both after this call
/// can be repeated. Thread-safe.
inline void manual_seed(std::uint64_t seed) noexcept { detail::process_seed.store(seed, detail::MemoryOrder::relaxed); }

}}  // namespace fanout::v0
