// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace detail {

/// Bytes of a cache line, the unit that moves between cores. Chosen by the architecture alone, so that code compiled
/// for different processors of one architecture agrees.
#if defined(__s390x__)
inline constexpr std::size_t cache_line = 256;
#elif defined(__powerpc64__) || (defined(__aarch64__) && defined(__APPLE__))
inline constexpr std::size_t cache_line = 128;
#else
inline constexpr std::size_t cache_line = 64;
#endif

/// Distance in bytes between data that different cores write: processors fetch lines of 64 bytes in pairs.
inline constexpr std::size_t cores_apart = cache_line < 128 ? 128 : cache_line;

}}}  // namespace fanout::v0::detail
