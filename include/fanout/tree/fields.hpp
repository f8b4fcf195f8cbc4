// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/tree/dict.hpp>
#include <fanout/tree/key.hpp>
#include <fanout/tree/member_name.hpp>
#include <fanout/tree/plain_struct.hpp>
#include <fanout/tree/tie_members.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Converts only to `const X*`, so that the fields that a base class lists are not taken for all fields of X.
template <class X>
struct PointerTo {
  template <class P>
    requires std::same_as<P, const X*>
  constexpr operator P() const noexcept {  // NOLINT(google-explicit-constructor): stands in for a pointer
    return nullptr;
  }
};

template <class X, class List>
inline constexpr bool lists_members_of = false;
template <class X, class... K, class... T, class... C>
inline constexpr bool lists_members_of<X, Dict<Entry<K, T C::*>...>> = ((std::is_base_of_v<C, X> &&
                                                                         std::is_object_v<T>)&&...);

template <class X, std::size_t I, class Letters>
struct member_key;
template <class X, std::size_t I, std::size_t... Letters>
struct member_key<X, I, std::index_sequence<Letters...>> {
  using type = Key<member_name<X, I>()[Letters]...>;
};

}  // namespace detail

/// A class that lists its fields: one with private members, base classes, constructors, arrays or more than 32 members.
/// It lists each field that counts once, with its name in leaf paths:
///
///     class Detections {
///       fanout::Tensor<float, 2> boxes_;
///       fanout::Tensor<float, 1> scores_;
///
///       friend constexpr auto fields(const Detections*) {
///         return fanout::dict("boxes"_k = &Detections::boxes_, "scores"_k = &Detections::scores_);
///       }
///     };
///
/// Such an object is rebuilt from its fields: it is default constructed, and each field is assigned. Members that are
/// not listed stay as the default constructor makes them.
template <class X>
concept ListsFields = std::is_class_v<X> && requires(detail::PointerTo<X> x) {
  requires detail::lists_members_of<X, decltype(fields(x))>;
};

/// A struct whose fields are known: it lists them, or is a plain struct.
template <class X>
concept HasFields = ListsFields<X> || detail::PlainStruct<X>;

namespace detail {

/// The fields of a struct: those that it lists, otherwise its members.
///
/// 1. `size`: the number of fields;
/// 2. `type<I>`: the declared type of the I-th one, with its const and its reference;
/// 3. `key<I>`: its name as a Key, or `void` if it has none;
/// 4. `get<I>(x)`: a reference to it;
/// 5. `make(value)`: a struct whose I-th field is the result of `value(constant)` for a constant I, called in order.
template <class X>
struct FieldsOf;

template <PlainStruct X>
  requires(!ListsFields<X>)
struct FieldsOf<X> {
  static constexpr std::size_t size = member_count<X>;

  template <std::size_t I>
  using type = typename decltype(tie_members(std::declval<X&>()))::template type<I>;

  template <std::size_t I>
  using key = typename std::conditional_t<member_name<X, I>().empty(), std::type_identity<void>,
                                          member_key<X, I, std::make_index_sequence<member_name<X, I>().size()>>>::type;

  template <std::size_t I>
  static constexpr auto& get(const X& x) noexcept {
    return std::get<I>(tie_members(x).references);
  }

  template <class Value>
  static constexpr X make(const Value& value) {
    return make(value, std::make_index_sequence<size>());
  }

 private:
  template <class Value, std::size_t... I>
  static constexpr X make([[maybe_unused]] const Value& value, std::index_sequence<I...>) {
    return X{value(std::integral_constant<std::size_t, I>())...};
  }
};

template <class X, class List>
struct ListedFields;
template <class X, class... K, class... T, class... C>
struct ListedFields<X, Dict<Entry<K, T C::*>...>> {
  static constexpr std::size_t size = sizeof...(K);

  template <std::size_t I>
  using type = std::tuple_element_t<I, std::tuple<T...>>;

  template <std::size_t I>
  using key = std::tuple_element_t<I, std::tuple<K...>>;

  template <std::size_t I>
  static constexpr auto& get(const X& x) noexcept {
    return x.*pointer<I>();
  }

  template <class Value>
    requires(std::default_initializable<X> && (std::is_move_assignable_v<T> && ...))
  static constexpr X make(const Value& value) { return make(value, std::index_sequence_for<K...>()); }

 private:
  template <std::size_t I>
  static constexpr auto pointer() noexcept {
    return std::get<I>(fields(PointerTo<X>()).values);
  }

  template <class Value, std::size_t... I>
  static constexpr X make([[maybe_unused]] const Value& value, std::index_sequence<I...>) {
    X x;
    ((x.*pointer<I>() = value(std::integral_constant<std::size_t, I>())), ...);
    return x;
  }
};

template <ListsFields X>
struct FieldsOf<X> : ListedFields<X, decltype(fields(PointerTo<X>()))> {};

struct AnyField {
  template <class I>
  AnyValue operator()(I) const;
};

}  // namespace detail

/// A struct that FieldsOf can make. A class that lists its fields needs a default constructor, and fields that can be
/// assigned.
template <class X>
concept Makeable = HasFields<X> && requires(const detail::AnyField& value) {
  detail::FieldsOf<X>::make(value);
};

}}  // namespace fanout::v0
