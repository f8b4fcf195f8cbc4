// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/output.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/join_pieces.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace rules {

/// The rule that stacks the shards' arrays along a new first axis.
struct Stack {};

}  // namespace rules

/// `return stack(x)`: arrays of R axes become a `Tensor<T, R + 1>` of [shards, extents...], in row order. Vectors and
/// spans count as arrays of one axis. Numbers and strings give one value per shard. Trees are stacked leaf by leaf.
/// Copies. The call throws ShapeMismatch if the shards return different extents.
template <class X>
detail::WithRule<rules::Stack, std::remove_cvref_t<X>> stack(X&& value) {
  return {std::forward<X>(value)};
}

namespace detail {

template <class X>
  requires(Scalar<X> || StringNode<X>)
struct gather_defaults<rules::Stack, X> : gather_traits<rules::Concatenate, X> {};

template <class X, class T, std::size_t R>
struct StackArrays {
  using type = Tensor<T, R + 1>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    const Extents<R> extents = View<const T, R>(pieces[0]).extents();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const View<const T, R> piece(pieces[i]);
      check_space(piece.space(), place, path, i);
      if (!(piece.extents() == extents)) {
        refuse_extents(place, path, i, to_string(extents), to_string(piece.extents()),
                       "stack needs arrays of the same extents from every replica");
      }
    }
    Extents<R + 1> stacked{pieces.size()};
    for (std::size_t axis = 0; axis < R; ++axis) stacked[axis + 1] = extents[axis];
    type result = make_result<T, R + 1>(stacked, place);
    join_pieces(result.data(), bytes_of<T, R>(pieces), place);
    return result;
  }
};

template <class T, std::size_t R>
struct gather_defaults<rules::Stack, Tensor<T, R>> : StackArrays<Tensor<T, R>, T, R> {};
template <class T, std::size_t R>
struct gather_defaults<rules::Stack, View<T, R>> : StackArrays<View<T, R>, std::remove_cv_t<T>, R> {};
template <class T, std::size_t R>
struct gather_defaults<rules::Stack, Output<T, R>> : StackArrays<Output<T, R>, T, R> {};
template <ArrayElement T, class Allocator>
  requires std::is_trivially_copyable_v<T>
struct gather_defaults<rules::Stack, std::vector<T, Allocator>> : StackArrays<std::vector<T, Allocator>, T, 1> {
};
template <StringNode T, class Allocator>
struct gather_defaults<rules::Stack, std::vector<T, Allocator>> {};  // strings cannot be elements of a tensor
template <class T, std::size_t N>
  requires(ArrayElement<std::remove_cv_t<T>>&& std::is_trivially_copyable_v<T>)
struct gather_defaults<rules::Stack, std::span<T, N>> : StackArrays<std::span<T, N>, std::remove_cv_t<T>, 1> {};

}  // namespace detail
}}  // namespace fanout::v0
