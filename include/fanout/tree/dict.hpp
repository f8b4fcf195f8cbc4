// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/tree/key.hpp>

namespace fanout { inline namespace v0 {

/// A map whose keys are part of its type. So each value has its own type, and a misspelt key does not compile. Made by
/// dict(). It is an aggregate of its values, in the order in which they were given.
template <class... Entries>
struct Dict;

namespace detail {

template <class K, class... Entries>
constexpr std::size_t position_of_key() {
  constexpr bool same[] = {std::is_same_v<K, typename Entries::key_type>..., false};
  std::size_t i = 0;
  while (i != sizeof...(Entries) && !same[i]) ++i;
  return i;
}

template <class... Entries>
constexpr bool keys_differ() {
  constexpr std::size_t positions[] = {position_of_key<typename Entries::key_type, Entries...>()..., 0};
  for (std::size_t i = 0; i != sizeof...(Entries); ++i) {
    if (positions[i] != i) return false;
  }
  return true;
}

/// A condition that names its arguments: compilers print them if a key is refused.
template <class Wanted, class... Keys>
inline constexpr bool is_key_among = (std::is_same_v<Wanted, Keys> || ...);
template <class... Given>
inline constexpr bool are_entries = false;

}  // namespace detail

template <class... K, class... T>
struct Dict<detail::Entry<K, T>...> {
  static_assert(detail::keys_differ<detail::Entry<K, T>...>(), "fanout: a dict has each key once");

  std::tuple<T...> values;

  /// True if the dict has this key.
  template <class Wanted>
  static constexpr bool contains(Wanted = {}) noexcept {
    return (std::is_same_v<Wanted, K> || ...);
  }
  static constexpr std::size_t size() noexcept { return sizeof...(K); }

  /// The value at a key: `dict["name"_k]`. A key that the dict does not have is an error of the compiler.
  template <char... Letters>
  constexpr auto& operator[](Key<Letters...> key) & {
    return std::get<index(key)>(values);
  }
  template <char... Letters>
  constexpr const auto& operator[](Key<Letters...> key) const& {
    return std::get<index(key)>(values);
  }
  template <char... Letters>
  constexpr auto&& operator[](Key<Letters...> key) && {
    return std::get<index(key)>(std::move(values));
  }

  /// Refuses a text in place of a key.
  template <class Text>
    requires std::is_convertible_v<const Text&, std::string_view>
  constexpr const Dict& operator[](const Text&) const {
    static_assert(
        sizeof(Text) == 0,
        "fanout: a key is part of a dict's type, so a plain string cannot name it; append _k to the string, with "
        "`using namespace fanout::literals`");
    return *this;
  }

  friend constexpr bool operator==(const Dict&, const Dict&) = default;

 private:
  template <class Wanted>
  static constexpr std::size_t index(Wanted) {
    static_assert(detail::is_key_among<Wanted, K...>,
                  "fanout: this dict has no such key; this diagnostic shows the key and those of the dict");
    return contains(Wanted{}) ? detail::position_of_key<Wanted, detail::Entry<K, T>...>() : 0;
  }
};

/// Makes a Dict: `dict("image"_k = x, "noise"_k = y)`. It owns copies of the values, or what was moved in.
template <class... K, class... T>
constexpr Dict<detail::Entry<K, T>...> dict(detail::Entry<K, T>... entries) {
  return {std::tuple<T...>{std::move(entries.value)...}};
}

/// Refuses arguments that are no entries.
template <class... Given>
  requires(sizeof...(Given) != 0)
constexpr Dict<> dict(const Given&...) {
  static_assert(
      detail::are_entries<Given...>,
      "fanout: dict takes only entries, and got another type (this diagnostic shows it); an entry is a string with the "
      "suffix _k, = and a value, with `using namespace fanout::literals`");
  return {};
}

}}  // namespace fanout::v0
