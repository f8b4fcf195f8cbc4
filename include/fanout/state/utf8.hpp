// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace fanout { inline namespace v0 { namespace detail {

/// The length of the UTF-8 sequence at the beginning of `text`, which is not empty. 0 if it is invalid: cut, overlong,
/// a surrogate, or above U+10FFFF.
constexpr std::size_t utf8_length(std::string_view text) noexcept {
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  // Only the second byte's range depends on the first one.
  const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < least || at(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((at(i) & 0xC0U) != 0x80) return 0;
  }
  return length;
}

/// The position of the first byte that is not UTF-8. The size of the text if all is.
constexpr std::size_t find_invalid_utf8(std::string_view text) noexcept {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) break;
    i += length;
  }
  return i;
}

/// Appends a code point, which must not be a surrogate, as UTF-8.
constexpr void append_utf8(std::string& text, char32_t point) {
  const auto last_bits = [point](unsigned shift) { return static_cast<char>(0x80U | ((point >> shift) & 0x3FU)); };
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xC0U | (point >> 6U));
    text += last_bits(0);
  } else if (point < 0x10000) {
    text += static_cast<char>(0xE0U | (point >> 12U));
    text += last_bits(6);
    text += last_bits(0);
  } else {
    text += static_cast<char>(0xF0U | (point >> 18U));
    text += last_bits(12);
    text += last_bits(6);
    text += last_bits(0);
  }
}

}}}  // namespace fanout::v0::detail
