// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <fanout/state/json_reader.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "support/message_of.hpp"

using fanout::FormatError;
using fanout::detail::JsonReader;
using fanout_test::message_of;
using fanout_test::says;

namespace {

std::string string_in(std::string_view json) {
  JsonReader reader(json, 8, "file");
  std::string text = reader.string("a string");
  reader.expect_end();
  return text;
}

std::uint64_t number_in(std::string_view json) {
  JsonReader reader(json, 8, "file");
  const std::uint64_t number = reader.number("a number");
  reader.expect_end();
  return number;
}

std::string refused_string(std::string_view json) {
  return message_of<FormatError>([json] { string_in(json); });
}
std::string refused_number(std::string_view json) {
  return message_of<FormatError>([json] { number_in(json); });
}

}  // namespace

TEST_CASE("a string of JSON is read without its escapes") {
  CHECK(string_in(R"("")").empty());
  CHECK(string_in(R"(  "layers.0"  )") == "layers.0");
  CHECK(string_in(R"("a\"b\\c\/d\b\f\n\r\t")") == "a\"b\\c/d\b\f\n\r\t");
  CHECK(string_in(R"("\u0041\u00e4\u00E4\u20AC\ud83d\ude00")") == "A\xC3\xA4\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(string_in(R"("\u0000")") == std::string(1, '\0'));
  CHECK(string_in("\"\xC3\xA4\x7F\"") == "\xC3\xA4\x7F");
}

TEST_CASE("what is no string of JSON is refused with its place") {
  CHECK(says(refused_string("x"), "file, byte 8", "expected a string", "found 'x'"));
  CHECK(says(refused_string(""), "byte 8", "found the end of the header"));
  CHECK(says(refused_string("\"ab"), "byte 11", "expected a \" at the end", "found the end"));
  CHECK(says(refused_string("\"a\nb\""), "byte 10", "no control character", "found byte 10"));
  CHECK(says(refused_string(R"("a\x")"), "byte 11", "letter that can follow", "found 'x'"));
  CHECK(says(refused_string("\"a\\"), "byte 11", "letter that can follow", "found the end"));
  CHECK(says(refused_string(R"("\u12g4")"), "byte 13", "four hexadecimal digits", "found 'g'"));
  CHECK(says(refused_string("\"\\u12"), "byte 13", "four hexadecimal digits", "found the end"));
  CHECK(says(refused_string(R"("\ude00")"), "no second half"));
  CHECK(says(refused_string(R"("\ud83d")"), "\\u and the second half"));
  CHECK(says(refused_string(R"("\ud83d\n")"), "\\u and the second half"));
  CHECK(says(refused_string(R"("\ud83dA")"), "the second half"));
  CHECK(says(refused_string(R"("\ud83d\ud83d")"), "the second half of a surrogate pair before this"));
  CHECK(says(refused_string("\"a\"\xE2\x82\xAC"), "byte 11", "expected the end", "found '\xE2\x82\xAC'"));
}

TEST_CASE("a number is digits below 2^64") {
  CHECK(number_in("0") == 0);
  CHECK(number_in(" 907 ") == 907);
  CHECK(number_in("18446744073709551615") == ~std::uint64_t{0});
  CHECK(says(refused_number("18446744073709551616"), "byte 27", "below 2^64"));
  CHECK(says(refused_number("99999999999999999999"), "below 2^64"));
  CHECK(says(refused_number("007"), "byte 9", "no digit behind a leading 0"));
  CHECK(says(refused_number("-1"), "byte 8", "expected a number", "found '-'"));
  CHECK(says(refused_number("1.0"), "byte 9", "a whole number"));
  CHECK(says(refused_number("1e3"), "byte 9", "a whole number"));
  CHECK(says(refused_number("1E3"), "byte 9", "a whole number"));
  CHECK(says(refused_number(""), "expected a number", "found the end"));
  CHECK(says(refused_number("1 2"), "byte 10", "expected the end", "found '2'"));
}

TEST_CASE("a token is taken only if it is next, behind any white space") {
  JsonReader reader(" \t\r\n{ ]", 100, "file");
  CHECK(reader.offset() == 104);
  CHECK_FALSE(reader.take('['));
  CHECK(reader.take('{'));
  CHECK_FALSE(reader.take('}'));
  CHECK(says(message_of<FormatError>([&] { reader.expect('}', "a brace"); }), "byte 106", "a brace", "found ']'"));
  CHECK(reader.take(']'));
  CHECK_FALSE(reader.take(']'));
  reader.expect_end();
}
