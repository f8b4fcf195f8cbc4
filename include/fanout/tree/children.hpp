// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/rebind.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// Visits the children of a node, for all code that walks over trees. A walker says what becomes of a child, and what is
// a leaf to it. It receives each child as three arguments:
//
// 1. the child;
// 2. its path;
// 3. its place, if places are asked for: `place(other)` is the child in the same place of another node, which must have
//    one there. `type` is its declared type. Each place has a type of its own, so places cost compile time.

/// Stands for a place if places are not asked for.
struct NoPlace {
  template <class... Key>
  explicit constexpr NoPlace(const Key&...) noexcept {}
};

struct WithoutPlaces {
  template <class Place>
  using type = NoPlace;
};
struct WithPlaces {
  template <class Place>
  using type = Place;
};
template <class Places, class Place>
using place_t = typename Places::template type<Place>;

template <class X, std::size_t I>
struct FixedPlace {
  using type = typename FixedChildren<X>::template type<I>;
  template <class Y>
  constexpr auto& operator()(Y& other) const noexcept {
    return FixedChildren<X>::template get<I>(other);
  }
};

template <class T, class Key>
struct MapPlace {
  using type = T;
  const Key& key;
  template <class Y>
  auto& operator()(Y& other) const {
    return other.find(key)->second;
  }
};

template <class T>
struct RowPlace {
  using type = T;
  std::size_t i;
  template <class Y>
  auto& operator()(Y& other) const {
    return other[i];
  }
};

template <class T>
struct OptionalPlace {
  using type = T;
  template <class Y>
  auto& operator()(Y& other) const noexcept {
    return *other;
  }
};

template <class X, std::size_t I>
struct VariantPlace {
  using type = typename AlternativesOf<X>::template type<I>;
  template <class Y>
  auto& operator()(Y& other) const noexcept {
    return AlternativesOf<std::remove_const_t<Y>>::template get<I>(other);
  }
};

/// The declared type of an element of a row or an array: a reference if the row does not own it, as a span does not.
template <class X>
struct declared_element {
  using type = typename X::value_type;
};
template <class X>
  requires(SpanNode<X> || shows_elements<X>)
struct declared_element<X> {
  using type = decltype(std::declval<const X&>()[std::size_t{0}]);
};
template <class X>
using declared_element_t = typename declared_element<X>::type;

template <class Places, class X, class F, std::size_t... I>
void visit_fixed([[maybe_unused]] X& node, [[maybe_unused]] const LeafPath& path, [[maybe_unused]] const F& f,
                 std::index_sequence<I...>) {
  using Node = std::remove_const_t<X>;
  (f(FixedChildren<Node>::template get<I>(node), fixed_path<Node, I>(path), place_t<Places, FixedPlace<Node, I>>()),
   ...);
}

/// Calls `f(child, path, place)` for each child of a node, in order. A leaf has no children, nor has a variant without
/// a value.
template <class Places = WithoutPlaces, class X, class F>
void visit_children([[maybe_unused]] X& node, [[maybe_unused]] const LeafPath& path, [[maybe_unused]] const F& f) {
  using Node = std::remove_const_t<X>;
  constexpr ChildKind kind = child_kind<Node>;
  if constexpr (kind == ChildKind::fixed) {
    visit_fixed<Places>(node, path, f, fixed_indices<Node>());
  } else if constexpr (kind == ChildKind::map) {
    std::size_t position = 0;
    for (auto& entry : node) {
      const auto& key = entry.first;
      f(entry.second, LeafPath::at_key(path, key, position++),
        place_t<Places, MapPlace<typename Node::mapped_type, typename Node::key_type>>{key});
    }
  } else if constexpr (kind == ChildKind::row || kind == ChildKind::array || kind == ChildKind::sequence) {
    for (std::size_t i = 0; i < node.size(); ++i) {
      f(node[i], LeafPath(path, i), place_t<Places, RowPlace<declared_element_t<Node>>>{i});
    }
  } else if constexpr (kind == ChildKind::optional) {
    if (node.has_value()) f(*node, path, place_t<Places, OptionalPlace<typename Node::value_type>>());
  } else if constexpr (kind == ChildKind::variant) {
    if (node.valueless_by_exception()) return;
    at_alternative(node, [&](auto index) {
      constexpr std::size_t held = decltype(index)::value;
      f(AlternativesOf<Node>::template get<held>(node), path, place_t<Places, VariantPlace<Node, held>>());
    });
  }
}

/// Refuses a map with NaN as a key, which is equal to no key.
template <class X>
void check_keys([[maybe_unused]] const X& node, [[maybe_unused]] const LeafPath& path) {
  if constexpr (child_kind<X> == ChildKind::map) {
    std::size_t position = 0;
    for (const auto& entry : node) {
      if (holds_nan(entry.first)) {
        refuse_key("a key that is NaN", to_string(LeafPath::at_key(path, entry.first, position)));
      }
      ++position;
    }
  }
}

/// The same for maps whose keys shards or ranks compare without the maps.
template <class X>
void check_compared_keys(const X& node, const LeafPath& path) {
  if constexpr (child_kind<X> == ChildKind::map) {
    static_assert(is_compared_key<typename X::key_type>,
                  "fanout: shards and ranks match maps by the values of their keys, and these keys cannot be compared "
                  "by value (this diagnostic shows their type); use numbers, enums, texts, and pairs, tuples, "
                  "containers and structs of these, without pointers; a class with private members lists its fields "
                  "(tree/fields.hpp)");
  }
  check_keys(node, path);
}

// Rebuilds nodes with other children.

template <class X, class Map, ChildKind kind = child_kind<X>>
struct rebuilt;

template <class Map, class... K, class... T>
struct rebuilt<Dict<Entry<K, T>...>, Map, ChildKind::fixed> {
  using type = Dict<Entry<K, typename Map::template type<T>>...>;
};
template <class X, class Map, class Children>
struct rebuilt_tuple;
template <class X, class Map, class... T, class... Step>
struct rebuilt_tuple<X, Map, ChildTypes<ChildType<T, Step>...>> {
  using type = rebind_tuple_t<X, typename Map::template type<T>...>;
};
template <TupleNode X, class Map>
struct rebuilt<X, Map, ChildKind::fixed> : rebuilt_tuple<X, Map, child_types_t<X>> {};
/// The type of a child in a container, which cannot hold references.
template <class Map, class T>
using held_t = std::remove_cvref_t<typename Map::template type<T>>;
template <class Map>
struct held_by {
  template <class T>
  using type = held_t<Map, T>;
};
template <class X, class Map>
struct rebuilt<X, Map, ChildKind::variant> : rebuilt_tuple<X, held_by<Map>, child_types_t<X>> {};
template <class X, class Map>
struct rebuilt<X, Map, ChildKind::array> {
  using type = rebind_tuple_t<X, held_t<Map, typename X::value_type>>;
};
template <class X, class Map>
struct rebuilt<X, Map, ChildKind::map> {
  using type = rebind_map_t<X, held_t<Map, typename X::mapped_type>>;
};
template <class X, class Map>
struct rebuilt<X, Map, ChildKind::optional> {
  using type = rebind_element_t<X, held_t<Map, typename X::value_type>>;
};
template <class X, class Map>
struct rebuilt<X, Map, ChildKind::row> {
  using type = rebind_element_t<X, held_t<Map, typename X::value_type>>;
};
template <class X, class Map>
  requires(SpanNode<X> || shows_elements<X>)  // which does not own its elements
struct rebuilt<X, Map, ChildKind::row> {
  using type = std::vector<held_t<Map, typename X::value_type>>;
};

/// The dict, tuple, array, map, vector, optional or variant X with `Map::type<T>` instead of each child of type T. For
/// a span, a vector. Containers that cannot hold references hold values. Not for structs: each walker says their type.
template <class X, class Map>
using rebuilt_t = typename rebuilt<X, Map>::type;

template <class Result, class Places, class X, class F, std::size_t... I>
Result rebuild_fixed([[maybe_unused]] const X& node, [[maybe_unused]] const LeafPath& path, [[maybe_unused]] const F& f,
                     std::index_sequence<I...>) {
  if constexpr (DictNode<X>) {
    return {decltype(Result::values){
        f(FixedChildren<X>::template get<I>(node), fixed_path<X, I>(path), place_t<Places, FixedPlace<X, I>>())...}};
  } else {
    return Result{
        f(FixedChildren<X>::template get<I>(node), fixed_path<X, I>(path), place_t<Places, FixedPlace<X, I>>())...};
  }
}

template <class Result, class Places, class X, class F, std::size_t... I>
Result rebuild_array([[maybe_unused]] const X& node, [[maybe_unused]] const LeafPath& path, [[maybe_unused]] const F& f,
                     std::index_sequence<I...>) {
  return Result{f(node[I], LeafPath(path, I), place_t<Places, RowPlace<declared_element_t<X>>>{I})...};
}

/// An empty node of type Result. A map gets the order or the hash of `node`, which may be a pointer to a function.
template <class Result, class X>
Result make_empty([[maybe_unused]] const X& node) {
  if constexpr (child_kind<X> != ChildKind::map) {
    return Result();
  } else if constexpr (requires { Result(node.key_comp()); }) {
    return Result(node.key_comp());
  } else if constexpr (requires { Result(std::size_t{0}, node.hash_function(), node.key_eq()); }) {
    return Result(std::size_t{0}, node.hash_function(), node.key_eq());
  } else {
    return Result();
  }
}

/// Returns a node of type Result with the results of `f(child, path, place)` instead of the children of a Rebuildable
/// node. A variant must hold a value.
template <class Result, class Places = WithoutPlaces, class X, class F>
Result rebuild(const X& node, const LeafPath& path, const F& f) {
  constexpr ChildKind kind = child_kind<X>;
  if constexpr (kind == ChildKind::fixed && StructNode<X>) {
    return FieldsOf<Result>::make([&](auto index) -> decltype(auto) {
      constexpr std::size_t I = decltype(index)::value;
      return f(FixedChildren<X>::template get<I>(node), fixed_path<X, I>(path), place_t<Places, FixedPlace<X, I>>());
    });
  } else if constexpr (kind == ChildKind::fixed) {
    return rebuild_fixed<Result, Places>(node, path, f, fixed_indices<X>());
  } else if constexpr (kind == ChildKind::array) {
    return rebuild_array<Result, Places>(node, path, f, std::make_index_sequence<std::tuple_size_v<X>>());
  } else if constexpr (kind == ChildKind::variant) {
    return at_alternative(node, [&](auto index) {
      constexpr std::size_t held = decltype(index)::value;
      return Result(std::in_place_index<held>,
                    f(AlternativesOf<X>::template get<held>(node), path, place_t<Places, VariantPlace<X, held>>()));
    });
  } else if constexpr (kind == ChildKind::optional) {
    if (!node.has_value()) return {};
    return Result(f(*node, path, place_t<Places, OptionalPlace<typename X::value_type>>()));
  } else {
    auto result = make_empty<Result>(node);
    if constexpr (requires { result.reserve(node.size()); }) result.reserve(node.size());
    visit_children<std::conditional_t<kind == ChildKind::map, WithPlaces, Places>>(
        node, path, [&]<class Child, class Place>(const Child& child, const LeafPath& at, const Place& place) {
          if constexpr (kind == ChildKind::map) {
            result.emplace(place.key, f(child, at, place_t<Places, Place>(place)));
          } else {
            result.push_back(f(child, at, place));
          }
        });
    return result;
  }
}

}}}  // namespace fanout::v0::detail
