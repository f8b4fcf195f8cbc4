// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <fanout/state/utf8.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>

using fanout::detail::find_invalid_utf8;

TEST_CASE("every code point is valid UTF-8, and nothing shorter or longer than its sequence is") {
  std::size_t wrong = 0;
  for (char32_t point = 0; point < 0x110000; ++point) {
    if (point == 0xD800) point = 0xE000;
    std::string text;
    fanout::detail::append_utf8(text, point);
    if (find_invalid_utf8(text) != text.size()) ++wrong;
    if (fanout::detail::utf8_length(text) != text.size()) ++wrong;
    if (text.size() > 1 && find_invalid_utf8(text.substr(0, text.size() - 1)) != 0) ++wrong;
    if (text.size() > 1 && find_invalid_utf8(text.substr(1)) != 0) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("overlong sequences, surrogates and what is above the last code point are not UTF-8") {
  for (const std::string_view text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x28\xA1",
        "\xE2\x82\x28", "\xF0\x9F\x28\x80", "\xF0\x9F\x98\xC0"}) {
    CHECK(find_invalid_utf8(text) == 0);
  }
  CHECK(find_invalid_utf8("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF") == 10);
  CHECK(find_invalid_utf8("ab\xC3\xA4z\xC3") == 5);
  CHECK(find_invalid_utf8("") == 0);
}
