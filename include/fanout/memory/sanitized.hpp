// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>

// AddressSanitizer's own functions, which only programs under it have. Its header is not needed for them, and not
// always there.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void __asan_poison_memory_region(const volatile void* begin, std::size_t bytes);
void __asan_unpoison_memory_region(const volatile void* begin, std::size_t bytes);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace fanout { inline namespace v0 { namespace detail {

// No type depends on the code below, and blocks are made in the same way with and without a sanitizer. So translation
// units of both kinds may be in one program.
#if defined(__has_feature)
inline constexpr bool under_address_sanitizer = __has_feature(address_sanitizer);
inline constexpr bool under_memory_sanitizer = __has_feature(memory_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_address_sanitizer = true;
inline constexpr bool under_memory_sanitizer = false;
#else
inline constexpr bool under_address_sanitizer = false;
inline constexpr bool under_memory_sanitizer = false;
#endif

/// True if released memory is cached. False under a sanitizer that watches each block from its allocation to its
/// release.
inline constexpr bool keeps_blocks = !under_address_sanitizer && !under_memory_sanitizer;

/// Tells AddressSanitizer that these bytes must not be touched.
inline void close_bytes([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
  if constexpr (under_address_sanitizer) __asan_poison_memory_region(begin, bytes);
}
inline void open_bytes([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
  if constexpr (under_address_sanitizer) __asan_unpoison_memory_region(begin, bytes);
}

}}}  // namespace fanout::v0::detail
