// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/tensor.hpp>
#include <fanout/memory/vector_leaf.hpp>
#include <fanout/parallel/broadcast.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/rebind.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout::inline v0 {

namespace detail {

template <class X>
inline constexpr bool is_vector_of_bool = false;
template <class Allocator>
inline constexpr bool is_vector_of_bool<std::vector<bool, Allocator>> = true;

/// How an argument of type X is split: `piece(x, rows, memory, path)` is what the shard with these rows is handed. This
/// one is for whatever holds no array: the value itself, to everyone.
template <class X>
struct Splitting {
  using piece_type = const X&;
  static const X& piece(const X& x, RowRange, const MemorySpace&, const LeafPath&) {
    static_assert(!is_vector_of_bool<X>,
                  "fanout: the elements of a std::vector<bool> cannot be pointed to, so it is not split by rows; use a "
                  "std::vector<char> or a Tensor<bool, 1>, or pass broadcast(x)");
    return x;
  }
};

template <class X>
using piece_t = typename Splitting<std::remove_cvref_t<X>>::piece_type;

template <class X>
struct Splitting<Broadcast<X>> {
  using piece_type = const std::remove_reference_t<X>&;
  static piece_type piece(const Broadcast<X>& x, RowRange, const MemorySpace&, const LeafPath&) { return x.value; }
};

template <ArrayLeaf X>
struct Splitting<X> {
  using piece_type = typename leaf_traits<X>::piece_type;
  static piece_type piece(const X& x, RowRange rows, const MemorySpace& space, const LeafPath& path) {
    piece_type piece = leaf_traits<X>::piece(x, rows.begin, rows.end);
    if constexpr (requires { piece.space(); }) {
      if (!(piece.space() == space)) {
        throw DeviceMismatch(explain({.what = "an argument lies in the wrong memory",
                                      .where = to_string(path),
                                      .expected = to_string(space),
                                      .found = to_string(piece.space()),
                                      .advice = "copy it there first"}));
      }
    }
    return piece;
  }
};

// Containers with an array in them are rebuilt around the pieces; dicts and tuples also for a broadcast() in them.

template <class X>
inline constexpr bool has_broadcast = false;
template <class X>
inline constexpr bool has_broadcast<Broadcast<X>> = true;
template <class... K, class... T>
inline constexpr bool has_broadcast<Dict<Entry<K, T>...>> = (has_broadcast<T> || ...);
template <class... T>
inline constexpr bool has_broadcast<std::tuple<T...>> = (has_broadcast<std::remove_cvref_t<T>> || ...);
template <class T, class U>
inline constexpr bool has_broadcast<std::pair<T, U>> = has_broadcast<std::tuple<T, U>>;

template <class X>
concept SplitDict = DictNode<X> &&(HasArrayLeaf<X> || has_broadcast<X>);
template <class X>
concept SplitMap = MapNode<X> && HasArrayLeaf<X> && !SplitDict<X>;
template <class X>
concept SplitVector = VectorNode<X> && HasArrayLeaf<X> && !SplitMap<X>;
template <class X>
concept SplitSpan = SpanNode<X> && HasArrayLeaf<X> && !SplitVector<X> && !SplitMap<X>;
template <class X>
concept SplitOptional = OptionalNode<X> && HasArrayLeaf<X> && !SplitVector<X> && !SplitSpan<X> && !SplitMap<X>;
template <class X>
concept SplitTuple = TupleNode<X> &&(HasArrayLeaf<X> || has_broadcast<X>);
template <class X>
concept SplitVariant = VariantNode<X> && HasArrayLeaf<X>;
template <class X>
concept SplitStruct = StructLike<X> && HasArrayLeaf<X>;

template <class... K, class... T>
  requires SplitDict<Dict<Entry<K, T>...>>
struct Splitting<Dict<Entry<K, T>...>> {
  using X = Dict<Entry<K, T>...>;
  using piece_type = Dict<Entry<K, piece_t<T>>...>;
  static piece_type piece(const X& x, RowRange rows, const MemorySpace& space, const LeafPath& path) {
    return {std::tuple<piece_t<T>...>{Splitting<T>::piece(x[K{}], rows, space, LeafPath(path, K::name()))...}};
  }
};

template <SplitTuple X>
struct Splitting<X> {
  template <std::size_t I>
  using element_t = std::remove_cvref_t<std::tuple_element_t<I, X>>;
  template <class Indices>
  struct pieces_of;
  template <std::size_t... I>
  struct pieces_of<std::index_sequence<I...>> {
    using type = rebind_tuple_t<X, piece_t<element_t<I>>...>;
    static type piece(const X& x, RowRange rows, const MemorySpace& space, const LeafPath& path) {
      return type{Splitting<element_t<I>>::piece(std::get<I>(x), rows, space, LeafPath(path, I))...};
    }
  };
  using pieces = pieces_of<std::make_index_sequence<std::tuple_size_v<X>>>;
  using piece_type = typename pieces::type;

  static piece_type piece(const X& x, RowRange rows, const MemorySpace& space, const LeafPath& path) {
    return pieces::piece(x, rows, space, path);
  }
};

template <SplitMap X>
struct Splitting<X> {
  using T = typename X::mapped_type;
  using piece_type = rebind_map_t<X, piece_t<T>>;
  static piece_type piece(const X& x, RowRange rows, const MemorySpace& space, const LeafPath& path) {
    piece_type pieces;
    std::size_t position = 0;
    for (const auto& [key, value] : x) {
      pieces.emplace(key, Splitting<T>::piece(value, rows, space, LeafPath::at_key(path, key_text(key, position++))));
    }
    return pieces;
  }
};

/// Rows of trees, into rows of pieces.
template <class X, class Result>
struct SplittingRow {
  using T = typename X::value_type;
  using piece_type = Result;
  static piece_type piece(const X& x, RowRange rows, const MemorySpace& space, const LeafPath& path) {
    piece_type pieces;
    for (std::size_t i = 0; i < x.size(); ++i) {
      pieces.push_back(Splitting<T>::piece(x[i], rows, space, LeafPath(path, i)));
    }
    return pieces;
  }
};

template <SplitVector X>
struct Splitting<X> : SplittingRow<X, rebind_element_t<X, piece_t<typename X::value_type>>> {};
template <SplitSpan X>
struct Splitting<X> : SplittingRow<X, std::vector<piece_t<typename X::value_type>>> {};

template <SplitOptional X>
struct Splitting<X> {
  using T = typename X::value_type;
  using piece_type = rebind_element_t<X, piece_t<T>>;
  static piece_type piece(const X& x, RowRange rows, const MemorySpace& space, const LeafPath& path) {
    if (!x.has_value()) return {};
    return piece_type(Splitting<T>::piece(*x, rows, space, path));
  }
};

/// A variant of the same alternatives, of which those without arrays are copied, since a variant holds no reference.
template <SplitVariant X>
struct Splitting<X> {
  template <std::size_t I>
  using alternative_t = std::remove_cv_t<typename AlternativesOf<X>::template type<I>>;
  template <class Indices>
  struct pieces_of;
  template <std::size_t... I>
  struct pieces_of<std::index_sequence<I...>> {
    using type = rebind_tuple_t<X, std::remove_cvref_t<piece_t<alternative_t<I>>>...>;
    static constexpr bool makeable =
        (std::is_constructible_v<std::remove_cvref_t<piece_t<alternative_t<I>>>, piece_t<alternative_t<I>>> && ...);
  };
  using pieces = pieces_of<std::make_index_sequence<AlternativesOf<X>::size>>;
  using piece_type = typename pieces::type;

  static piece_type piece(const X& x, [[maybe_unused]] RowRange rows, [[maybe_unused]] const MemorySpace& space,
                          const LeafPath& path) {
    static_assert(pieces::makeable,
                  "fanout: a variant with arrays is split by rows and made anew for each shard, so its alternatives "
                  "without arrays must be copyable; make them so, or pass broadcast(x)");
    if (x.valueless_by_exception()) {
      throw StructureMismatch(explain({.what = "an argument is a variant without a value",
                                       .where = to_string(path),
                                       .expected = "one of its alternatives",
                                       .found = "none",
                                       .advice = "an exception left it so; assign a value to it"}));
    }
    if constexpr (pieces::makeable) {
      return at_alternative(x, [&](auto at) {
        constexpr std::size_t held = decltype(at)::value;
        return piece_type(std::in_place_index<held>, Splitting<alternative_t<held>>::piece(
                                                         AlternativesOf<X>::template get<held>(x), rows, space, path));
      });
    }
    __builtin_unreachable();  // refused, and this silences what would follow
  }
};

/// Whether a value of type X shows trees by a span, which would take the vector of their pieces, and show what is gone.
template <class X>
inline constexpr bool shows_trees = SplitSpan<X>;
template <template <class...> class C, class... T>
inline constexpr bool shows_trees<C<T...>> = (shows_trees<std::remove_cvref_t<T>> || ...);

/// Whether a field that is declared as a Field can hold what a shard is handed of it. A reference can refer to what every
/// shard is handed whole, but not to rows, which would be gone.
template <class Field>
inline constexpr bool holds_piece =
    std::is_convertible_v<piece_t<Field>, std::remove_cv_t<Field>> && !shows_trees<std::remove_cv_t<Field>>;
template <class Field>
  requires std::is_reference_v<Field>
inline constexpr bool holds_piece<Field> = !HasArrayLeaf<std::remove_cvref_t<Field>>;

template <class X, std::size_t... I>
constexpr bool holds_pieces(std::index_sequence<I...>) {
  return (holds_piece<typename FieldsOf<X>::template type<I>> && ...);
}

/// A struct keeps its type, so it is rebuilt around the rows of its arrays if these are of the arrays' own types.
template <SplitStruct X>
struct Splitting<X> {
  using piece_type = X;

  static X piece(const X& x, [[maybe_unused]] RowRange rows, [[maybe_unused]] const MemorySpace& space,
                 [[maybe_unused]] const LeafPath& path) {
    static_assert(
        StructNode<X>,
        "fanout: a struct with arrays is split by rows, but this one's members cannot be found, because of base "
        "classes, C arrays or more than 32 members; list its fields (tree/fields.hpp), or pass a tuple, a dict "
        "or broadcast(x)");
    if constexpr (StructNode<X>) {
      constexpr bool holds_all = holds_pieces<X>(std::make_index_sequence<FieldsOf<X>::size>());
      static_assert(holds_all && Makeable<X>,
                    "fanout: a struct that is split by rows keeps its type, so its arrays must be View<const T, R> or "
                    "std::span<const T> and its other members copyable; make them so, or pass a tuple, a dict or "
                    "broadcast(x)");
      if constexpr (holds_all && Makeable<X>) {
        return FieldsOf<X>::make(
            [&](auto index) -> decltype(auto) { return field_piece<decltype(index)::value>(x, rows, space, path); });
      }
    }
    __builtin_unreachable();  // refused, and this silences what would follow
  }

 private:
  template <std::size_t I>
  static decltype(auto) field_piece(const X& x, RowRange rows, const MemorySpace& space, const LeafPath& path) {
    using Field = typename FieldsOf<X>::template type<I>;
    if constexpr (std::is_reference_v<Field>) {
      return FieldsOf<X>::template get<I>(x);
    } else {
      return Splitting<std::remove_cv_t<Field>>::piece(FieldsOf<X>::template get<I>(x), rows, space,
                                                       field_path<X, I>(path));
    }
  }
};

/// Counts the rows of the first array, and notes whether all others have as many.
struct CountRows {
  std::optional<std::size_t> rows = {};
  bool agree = true;

  template <ArrayLeaf A>
  void operator()(const A& array, const LeafPath&) {
    const std::size_t found = leaf_traits<A>::rows(array);
    if (!rows) rows = found;
    agree = agree && found == *rows;
  }
};

/// Finds the first array that has not as many rows as the one before all others, and throws with the places of both.
struct RefuseRows {
  std::optional<std::size_t> rows = {};
  std::string first = {};

  template <ArrayLeaf A>
  void operator()(const A& array, const LeafPath& path) {
    const std::size_t found = leaf_traits<A>::rows(array);
    if (!rows) {
      rows = found;
      first = to_string(path);
    } else if (found != *rows) {
      throw ShapeMismatch(explain({.what = "arguments have different numbers of rows",
                                   .where = first + " and " + to_string(path),
                                   .expected = "as many rows in every array that is split",
                                   .found = std::to_string(*rows) + " and " + std::to_string(found),
                                   .advice = "pass broadcast(x) for what every replica needs whole"}));
    }
  }
};

template <class F, std::size_t... I, class... Args>
void visit_arguments(F& f, std::index_sequence<I...>, const Args&... args) {
  [[maybe_unused]] constexpr LeafPath input("input");
  (visit_arrays(args, LeafPath(input, I), f), ...);
}

template <std::size_t... I, class... Args>
std::tuple<piece_t<Args>...> scatter_arguments([[maybe_unused]] RowRange rows,
                                               [[maybe_unused]] const MemorySpace& space, std::index_sequence<I...>,
                                               const Args&... args) {
  [[maybe_unused]] constexpr LeafPath input("input");
  return {Splitting<Args>::piece(args, rows, space, LeafPath(input, I))...};
}

}  // namespace detail

/// The rows of one call: what the arrays among the arguments agree on; none if there is no array to split. Throws
/// ShapeMismatch, naming two that do not agree.
template <class... Args>
std::optional<std::size_t> batch_rows(const Args&... args) {
  constexpr std::index_sequence_for<Args...> indices;
  detail::CountRows count;
  detail::visit_arguments(count, indices, args...);
  if (!count.agree) {
    detail::RefuseRows refuse;
    detail::visit_arguments(refuse, indices, args...);
  }
  return count.rows;
}

/// What one shard is handed of the arguments of a call, as a tuple: rows of the arrays, in place, and references to the
/// rest. The pieces borrow from the arguments. Throws DeviceMismatch for an array outside of `space`.
template <class... Args>
std::tuple<detail::piece_t<Args>...> scatter(const Shard& shard, const MemorySpace& space, const Args&... args) {
  return detail::scatter_arguments(shard.rows, space, std::index_sequence_for<Args...>{}, args...);
}

}  // namespace fanout::inline v0
