// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How the children of a node are reached.
enum class ChildKind : unsigned char {
  none,      ///< a leaf
  fixed,     ///< a fixed number, each of its own type: dict, tuple, struct
  array,     ///< a fixed number, all of one type
  map,       ///< by key
  row,       ///< by position: vectors and spans, also of numbers
  optional,  ///< one or none
  variant,   ///< one of several types
  sequence,  ///< by position, without push_back(): searched only for fields of models
};

/// A range whose elements can be referred to, unlike those of a `std::vector<bool>`.
template <class X>
concept RefersToElements = std::is_lvalue_reference_v<decltype(std::declval<const X&>()[std::size_t{0}])>;

/// `std::array`.
template <class X>
concept UniformTuple = TupleNode<X> && std::tuple_size<X>::value != 0 && requires {
  typename X::value_type;
}
&&RefersToElements<X>;

/// Elements of one type that are reached by position.
template <class X>
concept ElementSequence = !ArrayLeaf<X> && !StringNode<X> && requires(X & x) {
  typename X::value_type;
  { x[std::size_t{0}] } -> std::same_as<typename X::value_type&>;
  { x.size() } -> std::convertible_to<std::size_t>;
};

/// Does not ask if a vector is an array leaf, since that depends on what its elements contain.
template <class X>
consteval ChildKind find_child_kind() {
  if constexpr (owns_elements<X> || shows_elements<X>) {
    return RefersToElements<X> ? ChildKind::row : ChildKind::none;
  } else if constexpr (DictNode<X>) {
    return ChildKind::fixed;
  } else if constexpr (MapNode<X>) {
    return ChildKind::map;
  } else if constexpr (VectorNode<X> || SpanNode<X>) {
    return RefersToElements<X> ? ChildKind::row : ChildKind::none;
  } else if constexpr (OptionalNode<X>) {
    return ChildKind::optional;
  } else if constexpr (UniformTuple<X>) {
    return ChildKind::array;
  } else if constexpr (TupleNode<X>) {
    return ChildKind::fixed;
  } else if constexpr (VariantNode<X>) {
    return ChildKind::variant;
  } else if constexpr (StructNode<X>) {
    return ChildKind::fixed;
  } else if constexpr (ElementSequence<X>) {
    return ChildKind::sequence;
  } else {
    return ChildKind::none;
  }
}

template <class X>
inline constexpr ChildKind child_kind = find_child_kind<X>();

/// A node that can be rebuilt with other children. For a struct, each walker says which children it can hold.
template <class X>
concept Rebuildable = (child_kind<X> != ChildKind::none) && (child_kind<X> != ChildKind::sequence);

/// The children of a node of the kind `fixed`, like FieldsOf for a struct:
///
/// 1. `size`: the number of children;
/// 2. `type<I>`: the declared type of the I-th one;
/// 3. `key<I>`: its name as a Key, or `void` if it has none;
/// 4. `get<I>(x)`: a reference to it, const if `x` is.
template <class X>
struct FixedChildren {  // of a tuple
  static constexpr std::size_t size = std::tuple_size_v<X>;
  template <std::size_t I>
  using type = std::tuple_element_t<I, X>;
  template <std::size_t I>
  using key = void;
  template <std::size_t I, class Y>
  static constexpr auto& get(Y& x) noexcept {
    return std::get<I>(x);
  }
};

template <class... K, class... T>
struct FixedChildren<Dict<Entry<K, T>...>> {
  static constexpr std::size_t size = sizeof...(K);
  template <std::size_t I>
  using type = std::tuple_element_t<I, std::tuple<T...>>;
  template <std::size_t I>
  using key = std::tuple_element_t<I, std::tuple<K...>>;
  template <std::size_t I, class Y>
  static constexpr auto& get(Y& x) noexcept {
    return x[key<I>()];
  }
};

template <StructNode X>
struct FixedChildren<X> {
  static constexpr std::size_t size = FieldsOf<X>::size;
  template <std::size_t I>
  using type = typename FieldsOf<X>::template type<I>;
  template <std::size_t I>
  using key = typename FieldsOf<X>::template key<I>;
  template <std::size_t I, class Y>
  static constexpr auto& get(Y& x) noexcept {
    if constexpr (std::is_const_v<Y>) {
      return FieldsOf<X>::template get<I>(x);
    } else {  // FieldsOf shows the fields as those of a const struct
      return const_cast<std::remove_reference_t<type<I>>&>(FieldsOf<X>::template get<I>(x));
    }
  }
};

template <class X>
using fixed_indices = std::make_index_sequence<FixedChildren<X>::size>;

/// The path of the I-th child of a node of the kind `fixed`.
template <class X, std::size_t I>
constexpr LeafPath fixed_path(const LeafPath& path) noexcept {
  using Name = typename FixedChildren<X>::template key<I>;
  if constexpr (std::is_void_v<Name>) {
    return LeafPath(path, I);
  } else {
    return LeafPath(path, Name::name());
  }
}

// Steps from a node to a child, as a compiler prints them: the Key of a name, or one of these.

template <std::size_t I>
struct Element {};
struct EachValue {};
template <std::size_t I>
struct Alternative {};

/// The place of a leaf in a type.
template <class... Steps>
struct LeafAt {};

/// The declared type of a child, and the step to it.
template <class Declared, class Step>
struct ChildType {};
template <class... Children>
struct ChildTypes {};

template <class Key, std::size_t I>
struct fixed_step {
  using type = Key;
};
template <std::size_t I>
struct fixed_step<void, I> {
  using type = Element<I>;
};

template <class X, std::size_t... I>
ChildTypes<ChildType<typename FixedChildren<X>::template type<I>,
                     typename fixed_step<typename FixedChildren<X>::template key<I>, I>::type>...>
    list_fixed(std::index_sequence<I...>);
template <class X, std::size_t... I>
ChildTypes<ChildType<typename AlternativesOf<X>::template type<I>, Alternative<I>>...> list_alternatives(
    std::index_sequence<I...>);

template <class X, ChildKind kind = child_kind<X>>
struct child_types {
  using type = ChildTypes<ChildType<typename X::value_type, EachValue>>;
};
template <class X>
struct child_types<X, ChildKind::none> {
  using type = ChildTypes<>;
};
template <class X>
struct child_types<X, ChildKind::fixed> {
  using type = decltype(list_fixed<X>(fixed_indices<X>()));
};
template <class X>
struct child_types<X, ChildKind::map> {
  using type = ChildTypes<ChildType<typename X::mapped_type, EachValue>>;
};
template <class X>
struct child_types<X, ChildKind::variant> {
  using type = decltype(list_alternatives<X>(std::make_index_sequence<AlternativesOf<X>::size>()));
};

/// The declared types of the children of a node of type X: a ChildTypes.
template <class X>
using child_types_t = typename child_types<X>::type;

template <class Wanted, class... Child, class... Step>
consteval bool all_of(ChildTypes<ChildType<Child, Step>...>) {
  return (Wanted::template is<Child> && ...);
}

/// True if `Wanted::is<Declared>` is true for each child of X.
template <class Wanted, class X>
inline constexpr bool all_children = all_of<Wanted>(child_types_t<X>());

/// The first of several findings that is not void.
template <class... Findings>
struct first_finding {
  using type = void;
};
template <class First, class... Rest>
struct first_finding<First, Rest...> {
  using type = First;
};
template <class... Rest>
struct first_finding<void, Rest...> : first_finding<Rest...> {};

}}}  // namespace fanout::v0::detail
