// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/array/output.hpp>
#include <fanout/array/strided_view.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

namespace rules {

/// The rule that concatenates arrays on this axis.
template <int Axis>
struct ConcatenateOn {};

}  // namespace rules

/// `return concat<1>(x)`: concatenates arrays on this axis, in row order. -1 is the last axis. Takes tensors, views and
/// outputs that have this axis, and trees of them. All other extents must agree, otherwise the call throws
/// ShapeMismatch. Copies, unless the only shard returns a tensor or an output. `concat<0>(x)` takes anything and is the
/// default rule: use it inside another rule, or under another Options::axis.
template <int Axis, class X>
detail::WithRule<rules::ConcatenateOn<Axis>, std::remove_cvref_t<X>> concat(X&& value) {
  return {std::forward<X>(value)};
}

namespace detail {

template <int Axis, class X>
struct ConcatenateArraysOn {
  using type = gathered_under_t<rules::Concatenate, X>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    return gather_traits<rules::Concatenate, X>::gather(pieces, place.on_axis(Axis), path);
  }
};

template <int Axis, std::size_t R>
concept HasAxis = -static_cast<int>(R) <= Axis&& Axis < static_cast<int>(R);

template <int Axis, class T, std::size_t R>
  requires(Axis != 0 && HasAxis<Axis, R>)
struct gather_defaults<rules::ConcatenateOn<Axis>, Tensor<T, R>> : ConcatenateArraysOn<Axis, Tensor<T, R>> {};
template <int Axis, class T, std::size_t R>
  requires(Axis != 0 && HasAxis<Axis, R>)
struct gather_defaults<rules::ConcatenateOn<Axis>, View<T, R>> : ConcatenateArraysOn<Axis, View<T, R>> {};
template <int Axis, class T, std::size_t R>
  requires(Axis != 0 && HasAxis<Axis, R>)
struct gather_defaults<rules::ConcatenateOn<Axis>, StridedView<T, R>> : ConcatenateArraysOn<Axis, StridedView<T, R>> {};
template <int Axis, class T, std::size_t R>
  requires(Axis != 0 && HasAxis<Axis, R>)
struct gather_defaults<rules::ConcatenateOn<Axis>, Output<T, R>> : ConcatenateArraysOn<Axis, Output<T, R>> {};

/// Concatenates by rows, whatever Options::axis is.
template <class X>
  requires Gatherable<rules::Concatenate, X>
struct gather_chosen<rules::ConcatenateOn<0>, X> : ConcatenateArraysOn<0, X> {
};

}  // namespace detail
}}  // namespace fanout::v0
