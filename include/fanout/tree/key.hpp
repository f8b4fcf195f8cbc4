// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace fanout { inline namespace v0 {
namespace detail {

template <class K, class T>
struct Entry;

}  // namespace detail

/// A name that is part of a type: `"image"_k`. Its letters are template parameters one by one. So compilers print it
/// readably, and nvcc takes it everywhere, in kernels too: it cannot spell a class-type template argument.
template <char... Letters>
struct Key {
  static constexpr char text[] = {Letters..., '\0'};
  static constexpr std::string_view name() noexcept { return {text, sizeof...(Letters)}; }

  /// `"image"_k = value`: an entry for dict().
  template <class T>
  constexpr auto operator=(T value) const -> detail::Entry<Key, T> {
    return {std::move(value)};
  }
};

namespace detail {

/// A key and its value.
template <class K, class T>
struct Entry {
  using key_type = K;
  using value_type = T;
  T value;
};

struct Literal {
  static constexpr std::size_t longest = 64;
  char text[longest + 1]{};
  std::size_t size = 0;

  template <std::size_t N>
  consteval Literal(const char (&letters)[N]) : size(N - 1) {  // NOLINT(google-explicit-constructor): a literal
    static_assert(N >= 2 && N <= longest + 1, "fanout: a key has one to 64 characters");
    for (std::size_t i = 0; i + 1 < N; ++i) text[i] = letters[i];
  }
};

template <Literal L, class Indices>
struct key_of;
template <Literal L, std::size_t... I>
struct key_of<L, std::index_sequence<I...>> {
  using type = Key<L.text[I]...>;
};

}  // namespace detail

inline namespace literals {

/// Makes a Key: `"name"_k`, for `dict("name"_k = value)` and `dict["name"_k]`.
template <detail::Literal L>
constexpr auto operator""_k() noexcept {
  return typename detail::key_of<L, std::make_index_sequence<L.size>>::type{};
}

}  // namespace literals
}}  // namespace fanout::v0
