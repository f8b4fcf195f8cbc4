// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/scatter/broadcast.hpp>
#include <fanout/scatter/checked_scatter.hpp>
#include <fanout/scatter/each.hpp>
#include <fanout/scatter/inout.hpp>
#include <fanout/scatter/range.hpp>
#include <fanout/scatter/rows.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/scatter/split_on.hpp>
#include <fanout/scatter/split_struct.hpp>
#include <fanout/scatter/split_tree.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

template <class... P, std::size_t... I, class... Args>
std::tuple<P...> scatter_into([[maybe_unused]] std::tuple<P...>* as, [[maybe_unused]] const ScatterTarget& place,
                              std::index_sequence<I...>, const Args&... args) {
  return {piece_of<Args>(args, place, input_path<I>)...};
}

}  // namespace detail

/// Makes the inputs of one shard, as a tuple: a view of the shard's rows of each array, and a const reference to every
/// other argument. broadcast(), split(), inout(), rows(), each(), Range and sharded() choose another input rule. The
/// views borrow from the arguments. Rows that must be packed, or copied to the memory of `place`, are in
/// `place.scratch`. Throws DeviceMismatch if an array cannot be copied to that memory, or is an inout() in another
/// memory. Throws ShapeMismatch if an array does not have the axis of `place`. Throws StructureMismatch if a variant
/// with arrays has no value. Throws InvalidArgument if rows must be packed or copied without a scratch. Throws
/// OutOfMemory.
template <class... Args>
std::tuple<detail::piece_t<Args>...> scatter(const ScatterTarget& place, const Args&... args) {
  using Pieces = std::tuple<detail::piece_t<Args>...>;
  return detail::scatter_into(static_cast<Pieces*>(nullptr), place, std::index_sequence_for<Args...>{}, args...);
}

}}  // namespace fanout::v0
