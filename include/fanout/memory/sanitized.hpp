// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif

namespace fanout { inline namespace v0 { namespace detail {

// No type depends on what follows, and blocks are made alike with and without it, so that units of both kinds may share
// a program.

/// Whether dropped memory is kept for later: not where a sanitizer looks at each block from its making to its release.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool keeps_blocks = false;
#elif defined(__has_feature)
inline constexpr bool keeps_blocks = !__has_feature(address_sanitizer) && !__has_feature(memory_sanitizer);
#else
inline constexpr bool keeps_blocks = true;
#endif

/// Tells AddressSanitizer that nobody may touch these bytes.
inline void close_bytes([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(ASAN_POISON_MEMORY_REGION)
  ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
}
inline void open_bytes([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(ASAN_UNPOISON_MEMORY_REGION)
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
}

}}}  // namespace fanout::v0::detail
