// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/scatter/broadcast.hpp>
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

/// The inputs of one shard, as a tuple: views of the shard's rows of each array, and references to all other arguments.
/// broadcast(), split(), inout(), rows(), each(), Range and sharded() choose otherwise. The views borrow from the
/// arguments. If rows must be packed, or copied to the memory of `place`, they borrow from `place.scratch`. Throws
/// DeviceMismatch if an array is in a memory that cannot be copied from, or is an inout() of another memory. Throws
/// ShapeMismatch if an array does not have the axis of `place`. Throws OutOfMemory.
template <class... Args>
std::tuple<detail::piece_t<Args>...> scatter(const ScatterTarget& place, const Args&... args) {
  using ShardResults = std::tuple<detail::piece_t<Args>...>;
  return detail::scatter_into(static_cast<ShardResults*>(nullptr), place, std::index_sequence_for<Args...>{}, args...);
}

}}  // namespace fanout::v0
