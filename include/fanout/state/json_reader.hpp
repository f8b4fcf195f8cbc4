// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/state/format_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Reads the few kinds of JSON tokens that a header consists of, one after the other: punctuation, strings and whole
/// numbers. It never calls itself, so no input can nest too deep. Borrows the text, which must be valid UTF-8. All
/// functions skip white space first, and throw FormatError if there is something else than they read.
class JsonReader {
 public:
  /// `begin` is the place of the text in the file, for messages.
  JsonReader(std::string_view text, std::uint64_t begin, std::string_view file) noexcept
      : text_(text), file_(file), begin_(begin) {}

  /// The place in the file of the next token.
  std::uint64_t offset() noexcept {
    skip_space();
    return begin_ + at_;
  }

  /// Skips this character if it is next.
  FANOUT_INLINE bool take(char wanted) noexcept;

  /// Skips this word if it is next.
  FANOUT_INLINE bool take(std::string_view word) noexcept;

  void expect(char wanted, const char* what) {
    if (!take(wanted)) refuse(what);
  }

  void expect_end() {
    skip_space();
    if (at_ != text_.size()) refuse("the end of the header");
  }

  /// A string in quotes, without its escapes.
  FANOUT_INLINE std::string string(const char* what);

  /// A whole number below 2^64: digits, without a sign, a fraction, an exponent or zeros in front.
  FANOUT_INLINE std::uint64_t number(const char* what);

  [[noreturn]] FANOUT_INLINE void refuse(const char* expected) const;

 private:
  FANOUT_INLINE void skip_space() noexcept;

  static bool is_plain(char c) noexcept { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; }

  FANOUT_INLINE void add_escaped(std::string& result);

  FANOUT_INLINE char32_t code_unit();

  std::string_view text_;
  std::string_view file_;
  std::uint64_t begin_;
  std::size_t at_ = 0;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/json_reader.ipp>
#endif
