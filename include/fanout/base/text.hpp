// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// An integer that is written in digits: not a character, and not a truth value.
template <class T>
concept Countable = std::integral<T> && !std::same_as<T, char> && !std::same_as<T, bool>;

/// A text that is put together from parts: `Text() << "rows " << rows << " of " << device`. A part is a text, a
/// character, an integer, or an object with a to_string(). The functions of this class are not inlined, so that errors
/// are small machine code: docs/decisions/compiled_once.md has the figures.
class Text {
 public:
  [[gnu::cold]] FANOUT_INLINE Text& operator<<(std::string_view part);
  [[gnu::cold]] FANOUT_INLINE Text& operator<<(char part);
  template <Countable T>
  Text& operator<<(T number) {
    if constexpr (std::signed_integral<T>) {
      return add(static_cast<long long>(number));
    } else {
      return add(static_cast<unsigned long long>(number));
    }
  }
  template <class X>
    requires(!std::integral<X> && !std::convertible_to<const X&, std::string_view> &&
             requires(const X& x) { to_string(x); })
  [[gnu::noinline]] Text& operator<<(const X& part) { return *this << std::string_view(to_string(part)); }

  bool empty() const noexcept { return text_.empty(); }

  /// Valid until this is changed or destroyed. The parts of an Explanation live as long as they must.
  operator std::string_view() const noexcept { return text_; }  // NOLINT(google-explicit-constructor)
  /// Gives the text away.
  operator std::string() noexcept { return std::move(text_); }  // NOLINT(google-explicit-constructor)

 private:
  [[gnu::cold]] FANOUT_INLINE Text& add(long long number);
  [[gnu::cold]] FANOUT_INLINE Text& add(unsigned long long number);

  std::string text_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/base/text.ipp>
#endif
