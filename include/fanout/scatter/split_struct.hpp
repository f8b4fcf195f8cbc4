// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/scatter/checked_scatter.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/scatter/split_tree.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/rebind.hpp>

namespace fanout { inline namespace v0 {

// Splits structs with arrays: each shard receives a struct with its rows of them.

namespace detail {

template <class X>
concept SplitStruct = StructLike<X> && HasArrayLeaf<X>;

/// True if X has a span of trees in it. The pieces of the trees would be in a temporary vector, so the span would
/// dangle.
template <class X>
inline constexpr bool shows_trees = SpanNode<X>&& SplitNode<X>;
template <template <class...> class C, class... T>
inline constexpr bool shows_trees<C<T...>> = (shows_trees<std::remove_cvref_t<T>> || ...);

/// A struct that is a template of the kind of its arrays, with tensors as arrays: State<Tensor>. It can be rebuilt with
/// views.
template <class X>
concept OverTensors = requires {
  typename rebind_arrays_t<X, ConstView>;
  requires std::same_as<rebind_arrays_t<X, Tensor>, X>;
};

/// The struct that a shard receives: one of views if X is a template of the kind of its arrays, otherwise an X.
template <class X>
struct struct_piece {
  using type = X;
};
template <OverTensors X>
struct struct_piece<X> {
  using type = rebind_arrays_t<X, ConstView>;
};

/// True if a member of type Held can hold the shard's part of a member of type Field. A reference can refer to a value
/// that every shard receives whole. It cannot refer to rows, since their view is a temporary.
template <class Field, class Held>
inline constexpr bool holds_piece =
    std::is_convertible_v<piece_t<Field>, std::remove_cv_t<Held>> && !shows_trees<std::remove_cv_t<Held>>;
template <class Field, class Held>
  requires std::is_reference_v<Field>
inline constexpr bool holds_piece<Field, Held> = std::same_as<Field, Held> && !HasArrayLeaf<std::remove_cvref_t<Field>>;

template <class X, class Piece, std::size_t... I>
constexpr bool holds_pieces(std::index_sequence<I...>) {
  return (holds_piece<typename FieldsOf<X>::template type<I>, typename FieldsOf<Piece>::template type<I>> && ...);
}

/// The shard's struct has its rows of each array. If X is a template of the kind of its arrays, it is a struct of
/// views. Otherwise it keeps its type, so its arrays must be able to hold their rows.
template <SplitStruct X>
struct scatter_defaults<X> {
  using piece_type = typename struct_piece<X>::type;

  static piece_type piece(const X& x, [[maybe_unused]] const ScatterTarget& place,
                          [[maybe_unused]] const LeafPath& path) {
    static_assert(
        StructNode<X>,
        "fanout: a struct with arrays is split by rows, but this one's members cannot be found, because of base "
        "classes, C arrays or more than 32 members; list its fields (tree/fields.hpp), specialise "
        "scatter_traits, or pass a tuple, a dict or broadcast(x)");
    if constexpr (StructNode<X>) {
      constexpr bool holds_all = holds_pieces<X, piece_type>(std::make_index_sequence<FieldsOf<X>::size>());
      static_assert(holds_all && Makeable<piece_type>,
                    "fanout: a struct that is split by rows keeps its type, so its arrays must be View<const T, R> or "
                    "std::span<const T> and its other members copyable; make it a template of the kind of its arrays "
                    "(State<Tensor>, State<ConstView>), specialise scatter_traits, or pass a tuple, a dict or "
                    "broadcast(x)");
      if constexpr (holds_all && Makeable<piece_type>) {
        return rebuild<piece_type, WithPlaces>(
            x, path, [&place]<class T, class At>(T& field, const LeafPath& at, At) -> decltype(auto) {
              if constexpr (std::is_reference_v<typename At::type>) {
                return (field);
              } else {
                return piece_of<T>(field, place, at);
              }
            });
      }
    }
    __builtin_unreachable();  // only after a refusal; prevents further errors
  }
};

}  // namespace detail
}}  // namespace fanout::v0
