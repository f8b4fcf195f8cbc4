// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/json_reader.hpp>

#include <fanout/state/utf8.hpp>

namespace fanout { inline namespace v0 { namespace detail {

bool JsonReader::take(char wanted) noexcept {
  skip_space();
  if (at_ == text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

bool JsonReader::take(std::string_view word) noexcept {
  skip_space();
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

std::string JsonReader::string(const char* what) {
  if (!take('"')) refuse(what);
  std::string result;
  for (;;) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
    result.append(text_.substr(begin, at_ - begin));
    if (at_ == text_.size()) refuse("a \" at the end of the string");
    if (text_[at_] == '"') {
      ++at_;
      return result;
    }
    if (text_[at_] != '\\') refuse("no control character in a string");
    ++at_;
    add_escaped(result);
  }
}

std::uint64_t JsonReader::number(const char* what) {
  skip_space();
  const std::size_t begin = at_;
  std::uint64_t result = 0;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
    if (at_ != begin && text_[begin] == '0') refuse("no digit behind a leading 0");
    if (__builtin_mul_overflow(result, 10U, &result) || __builtin_add_overflow(result, digit, &result)) {
      refuse("a number below 2^64");
    }
    ++at_;
  }
  if (at_ == begin) refuse(what);
  if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) refuse("a whole number");
  return result;
}

void JsonReader::refuse(const char* expected) const {
  std::string found = "the end of the header";
  if (at_ < text_.size()) {
    const std::string_view rest = text_.substr(at_);
    const auto byte = static_cast<unsigned char>(rest[0]);
    found = byte < 0x20 || byte == 0x7F ? "byte " + std::to_string(byte)
                                        : "'" + std::string(rest.substr(0, utf8_length(rest))) + "'";
  }
  refuse_format(file_, begin_ + at_, expected, found);
}

void JsonReader::skip_space() noexcept {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

void JsonReader::add_escaped(std::string& result) {
  static constexpr std::string_view letters = "\"\\/bfnrt";
  static constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  const std::size_t found = at_ < text_.size() ? letters.find(text_[at_]) : std::string_view::npos;
  if (found != std::string_view::npos) {
    ++at_;
    result += meanings[found];
    return;
  }
  if (at_ == text_.size() || text_[at_] != 'u') refuse("a letter that can follow a \\");
  ++at_;
  char32_t point = code_unit();
  if (point >= 0xDC00 && point < 0xE000) refuse("no second half of a surrogate pair without the first");
  if (point >= 0xD800 && point < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") refuse("\\u and the second half of a surrogate pair");
    at_ += 2;
    const char32_t low = code_unit();
    if (low < 0xDC00 || low >= 0xE000) refuse("the second half of a surrogate pair before this");
    point = 0x10000 + ((point - 0xD800) << 10U) + (low - 0xDC00);
  }
  append_utf8(result, point);
}

char32_t JsonReader::code_unit() {
  char32_t unit = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at_ < text_.size() ? text_[at_] : ' ';
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      digit = (static_cast<unsigned>(c) & 0x5FU) - 'A' + 10U;
    } else {
      refuse("four hexadecimal digits behind \\u");
    }
    unit = unit * 16 + digit;
    ++at_;
  }
  return unit;
}

}}}  // namespace fanout::v0::detail
