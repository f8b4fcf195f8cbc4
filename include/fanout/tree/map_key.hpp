// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// The keys of maps as text that tells them apart by value: equal keys of one type have the same text, and others have
// another one. So shards and ranks compare keys by their text.

template <class K>
inline constexpr bool is_template_of_types = false;
template <template <class...> class C, class... T>
inline constexpr bool is_template_of_types<C<T...>> = true;

/// A string of the standard library. A class derived from it may have more in it.
template <class K>
concept TextKey = StringNode<K> && is_template_of_types<K>;

template <class K>
concept DurationKey = is_template_of_types<K> && requires(const K& key) {
  typename K::period;
  { key.count() } -> std::same_as<typename K::rep>;
};
template <class K>
concept TimeKey = is_template_of_types<K> && requires(const K& key) {
  { key.time_since_epoch() } -> std::same_as<typename K::duration>;
};
template <class K>
concept ComplexKey = is_template_of_types<K> && Scalar<K> && requires(const K& key) {
  { key.imag() } -> std::same_as<typename K::value_type>;
};

/// A C array or a container with an order of its own: two unordered sets that are equal may have different orders.
template <class K>
concept RangeKey = std::is_array_v<K> ||(is_template_of_types<K>&& requires(const K& key) {
  typename K::value_type;
  key.begin() != key.end();
  requires !requires { key.hash_function(); };
  requires !std::same_as<std::remove_cvref_t<decltype(*key.begin())>, K>;
});

/// Calls `f(part)` for each part of a key, in order.
template <class K, class F>
void visit_key_parts([[maybe_unused]] const K& key, [[maybe_unused]] const F& f) {
  if constexpr (TupleNode<K>) {
    std::apply([&f](const auto&... part) { (f(part), ...); }, key);
  } else if constexpr (ComplexKey<K>) {
    f(key.real());
    f(key.imag());
  } else if constexpr (OptionalNode<K>) {
    if (key.has_value()) f(*key);
  } else if constexpr (VariantNode<K>) {
    if (key.valueless_by_exception()) return;
    f(key.index());
    at_alternative(key, [&](auto held) { f(AlternativesOf<K>::template get<decltype(held)::value>(key)); });
  } else if constexpr (DurationKey<K>) {
    f(key.count());
  } else if constexpr (TimeKey<K>) {
    f(key.time_since_epoch());
  } else if constexpr (HasFields<K>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(FieldsOf<K>::template get<I>(key)), ...); }
    (std::make_index_sequence<FieldsOf<K>::size>());
  } else {
    for (const auto& part : key) f(part);
  }
}

template <class K>
consteval bool find_compared_key();

/// A key that can be compared by value: a number, an enum, a text, or one of parts that can be. Not a pointer.
template <class K>
inline constexpr bool is_compared_key = find_compared_key<std::remove_cvref_t<K>>();

template <class K>
consteval bool find_compared_key() {
  if constexpr (std::is_arithmetic_v<K> || std::is_enum_v<K> || TextKey<K> || std::same_as<K, DeviceId>) {
    return true;
  } else if constexpr (std::is_array_v<K>) {
    return is_compared_key<std::remove_extent_t<K>>;
  } else if constexpr (!std::is_class_v<K>) {
    return false;
  } else if constexpr (TupleNode<K>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (is_compared_key<std::tuple_element_t<I, K>> && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<K>>());
  } else if constexpr (ComplexKey<K>) {
    return true;
  } else if constexpr (OptionalNode<K>) {
    return is_template_of_types<K> && is_compared_key<typename K::value_type>;
  } else if constexpr (VariantNode<K>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (is_compared_key<typename AlternativesOf<K>::template type<I>> && ...);
    }
    (std::make_index_sequence<AlternativesOf<K>::size>());
  } else if constexpr (DurationKey<K> || TimeKey<K>) {
    return true;
  } else if constexpr (HasFields<K>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (is_compared_key<typename FieldsOf<K>::template type<I>> && ...);
    }
    (std::make_index_sequence<FieldsOf<K>::size>());
  } else if constexpr (RangeKey<K>) {
    return is_compared_key<decltype(*std::declval<const K&>().begin())>;
  } else {
    return false;
  }
}

/// True if a number in the key is NaN.
template <class K>
bool holds_nan([[maybe_unused]] const K& key) {
  if constexpr (std::is_floating_point_v<K>) {
    return __builtin_isnan(key);
  } else if constexpr (!is_compared_key<K> || !(std::is_class_v<K> || std::is_array_v<K>) || TextKey<K> ||
                       std::same_as<K, DeviceId>) {
    return false;
  } else {
    bool found = false;
    visit_key_parts(key, [&found](const auto& part) { found = found || holds_nan(part); });
    return found;
  }
}

/// The shortest text of `%g` that reads back the same. 0 and -0 are equal.
template <class T>
std::string float_text(T x) {
  if (x == 0) return "0";
  char text[64];
  for (int digits = 1;; ++digits) {
    const bool last = digits == 36;  // enough for all types; a NaN never reads back the same
    if constexpr (std::same_as<T, long double>) {
      std::snprintf(text, sizeof text, "%.*Lg", digits, x);
      if (last || std::strtold(text, nullptr) == x) return text;
    } else {
      std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(x));
      if (last || static_cast<T>(std::strtod(text, nullptr)) == x) return text;
    }
  }
}

/// Appends a text in quotes. A quote in it does not end it.
template <class Text>
void append_quoted(Text& text, std::string_view letters) {
  text += '"';
  for (const char letter : letters) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter;
  }
  text += '"';
}

/// Appends the text of a key that can be compared.
template <class K>
void append_key(std::string& text, const K& key) {
  if constexpr (std::is_floating_point_v<K>) {
    text += float_text(key);
  } else if constexpr (std::is_enum_v<K>) {
    append_key(text, static_cast<std::underlying_type_t<K>>(key));
  } else if constexpr (std::is_integral_v<K>) {
    if constexpr (sizeof(K) > sizeof(long long)) {  // an __int128
      text += std::to_string(static_cast<long long>(key >> 64)) + ":";
      text += std::to_string(static_cast<unsigned long long>(key));
    } else if constexpr (std::is_signed_v<K>) {
      text += std::to_string(static_cast<long long>(key));
    } else {
      text += std::to_string(static_cast<unsigned long long>(key));
    }
  } else if constexpr (TextKey<K>) {
    append_quoted(text, key);
  } else if constexpr (std::same_as<K, DeviceId>) {
    text += to_string(key);
  } else {
    const bool is_tuple = TupleNode<K>;
    bool first = true;
    text += is_tuple ? '(' : '{';
    visit_key_parts(key, [&](const auto& part) {
      if (!std::exchange(first, false)) text += ", ";
      append_key(text, part);
    });
    text += is_tuple ? ')' : '}';
  }
}

}}}  // namespace fanout::v0::detail
