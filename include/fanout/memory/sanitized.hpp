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

// No type depends on the code below, and blocks are made in the same way with and without a sanitizer. So translation
// units of both kinds may be in one program.

/// True if released memory is cached. False under a sanitizer that watches each block from its allocation to its
/// release.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool keeps_blocks = false;
#elif defined(__has_feature)
inline constexpr bool keeps_blocks = !__has_feature(address_sanitizer) && !__has_feature(memory_sanitizer);
#else
inline constexpr bool keeps_blocks = true;
#endif

/// Tells AddressSanitizer that these bytes must not be touched.
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
