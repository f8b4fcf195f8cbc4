// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <fanout/array/tensor.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/text.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/join_pieces.hpp>
#include <fanout/gather/moved_pieces.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

// Concatenates arrays on axes other than 0.

namespace detail {

/// The extents that all shards must agree on, as text: `[2, :, 3]` for axis 1.
[[gnu::cold]] FANOUT_INLINE std::string all_axes_but(std::size_t joined, const std::size_t* extents, std::size_t rank);

/// Concatenates tensors, views or outputs on this axis. Copies. Throws ShapeMismatch if their other extents differ, and
/// DeviceMismatch as check_space() does.
template <class T, std::size_t R, class X>
Tensor<T, R> join_arrays(const ShardResults<X>& pieces, std::size_t joined, const GatherTarget& place,
                         const LeafPath& path) {
  Extents<R> extents = pieces[0].extents();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Extents<R>& found = pieces[i].extents();
    for (std::size_t axis = 0; axis < R; ++axis) {
      if (axis != joined && found[axis] != extents[axis]) {
        refuse_extents(place, path, i, all_axes_but(joined, pieces[0].extents().values, R), to_string(found),
                       Text() << "arrays are concatenated on axis " << joined << ", so all other axes must agree");
      }
    }
    check_space(pieces[i].space(), place, path, i);
    if (i != 0) extents[joined] += found[joined];
  }
  // A piece in another memory is transferred whole, not run by run.
  const MovedPieces<T, R> moved(pieces, place.target);
  const InlineArray<PieceBytes> here(pieces.size(), [&](std::size_t i) -> PieceBytes {
    return {moved.data(i), place.target.space, pieces[i].size() * sizeof(T)};
  });
  auto result = make_result<T, R>(extents, place);
  std::size_t runs = 1;  // in each piece; the pieces take turns in the result
  for (std::size_t axis = 0; axis < joined; ++axis) runs *= extents[axis];
  join_runs(result.data(), runs, here, place);
  return result;
}

}  // namespace detail
}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/gather/join_arrays.ipp>
#endif
