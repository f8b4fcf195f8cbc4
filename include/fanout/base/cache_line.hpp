// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace detail {

/// The bytes of a line of the cache, which travels from core to core as a whole. By the architecture alone, so that
/// code compiled for different processors of one agrees.
#if defined(__s390x__)
inline constexpr std::size_t cache_line = 256;
#elif defined(__powerpc64__) || (defined(__aarch64__) && defined(__APPLE__))
inline constexpr std::size_t cache_line = 128;
#else
inline constexpr std::size_t cache_line = 64;
#endif

/// How far apart what one core writes stands from what another one uses: lines of 64 bytes are fetched in pairs.
inline constexpr std::size_t cores_apart = cache_line < 128 ? 128 : cache_line;

}}}  // namespace fanout::v0::detail
