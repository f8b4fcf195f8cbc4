// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/memory/output.hpp>
#include <fanout/memory/tensor.hpp>
#include <fanout/parallel/concatenate.hpp>
#include <fanout/parallel/gathering.hpp>
#include <fanout/parallel/under_rule.hpp>

namespace fanout::inline v0 {

/// Puts arrays one after the other on this axis, which is not that of the rows.
template <std::size_t Axis>
struct ConcatenateOn {};

/// `return concat<1>(x)`: arrays are put one after the other on this axis, in row order, where all other axes must agree;
/// trees leaf by leaf. For tensors, views and outputs with so many axes. Copies, unless there is only one shard, since
/// no shard's part is a run of the result. `concat<0>(x)` is what happens without it, for a place inside another rule.
template <std::size_t Axis, class X>
auto concat(X&& value) {
  using Rule = std::conditional_t<Axis == 0, Concatenate, ConcatenateOn<Axis>>;
  return UnderRule<Rule, std::remove_cvref_t<X>>{std::forward<X>(value)};
}

namespace detail {

/// `[2, :, 3]` for axis 1: what all shards' extents have in common.
template <std::size_t Axis, std::size_t R>
std::string all_axes_but(const Extents<R>& extents) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < R; ++axis) {
    text += (axis == 0 ? "" : ", ") + (axis == Axis ? ":" : std::to_string(extents[axis]));
  }
  return text + "]";
}

template <std::size_t Axis, class X, class T, std::size_t R>
struct ConcatenateArraysOn {
  using type = Tensor<T, R>;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    if (pieces.size() == 1) return Gathering<Concatenate, X>::gather(pieces, place, path);
    Extents<R> extents = pieces[0].extents();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Extents<R>& found = pieces[i].extents();
      for (std::size_t axis = 0; axis < R; ++axis) {
        if (axis != Axis && found[axis] != extents[axis]) {
          refuse_extents(place, path, i, all_axes_but<Axis>(pieces[0].extents()), to_string(found),
                         "arrays are concatenated on axis " + std::to_string(Axis) + ", so all other axes must agree");
        }
      }
      check_space(pieces[i].space(), place, path, i);
      if (i != 0) extents[Axis] += found[Axis];
    }
    type result = type::uninitialized(extents, place.target);
    std::size_t runs = 1;  // how often the arrays take turns
    for (std::size_t axis = 0; axis < Axis; ++axis) runs *= extents[axis];
    T* to = result.data();
    for (std::size_t run = 0; run < runs; ++run) {
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const std::size_t length = pieces[i].size() / runs;
        place.target.operations->copy(place.target.space, to, pieces[i].data() + run * length, length * sizeof(T));
        to += length;
      }
    }
    return result;
  }
};

template <std::size_t Axis, class T, std::size_t R>
  requires(Axis < R)
struct Gathering<ConcatenateOn<Axis>, Tensor<T, R>> : ConcatenateArraysOn<Axis, Tensor<T, R>, T, R> {};
template <std::size_t Axis, class T, std::size_t R>
  requires(Axis < R)
struct Gathering<ConcatenateOn<Axis>, View<T, R>> : ConcatenateArraysOn<Axis, View<T, R>, std::remove_cv_t<T>, R> {};
template <std::size_t Axis, class T, std::size_t R>
  requires(Axis < R)
struct Gathering<ConcatenateOn<Axis>, Output<T, R>> : ConcatenateArraysOn<Axis, Output<T, R>, T, R> {};

}  // namespace detail
}  // namespace fanout::inline v0
