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
#include <fanout/scatter/shard_place.hpp>
#include <fanout/scatter/split_on.hpp>
#include <fanout/scatter/split_struct.hpp>
#include <fanout/scatter/split_tree.hpp>
#include <fanout/scatter/splitting.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

template <class... P, std::size_t... I, class... Args>
std::tuple<P...> scatter_into([[maybe_unused]] std::tuple<P...>* as, [[maybe_unused]] const ShardPlace& place,
                              std::index_sequence<I...>, const Args&... args) {
  return {Splitting<Args>::piece(args, place, input_path<I>)...};
}

}  // namespace detail

/// What one shard is handed of the arguments of a call, as a tuple: rows of the arrays, in place, and references to the
/// rest; see each of broadcast(), split(), inout(), rows(), each(), Range and sharded() for what chooses otherwise. The
/// pieces borrow from the arguments, and from `place.scratch` where they had to be packed, or brought to the place's
/// memory from another one. Throws DeviceMismatch for an array in a memory that no way is known from, or to be written
/// in another one; ShapeMismatch for one without the place's axis; OutOfMemory.
template <class... Args>
std::tuple<detail::piece_t<Args>...> scatter(const detail::ShardPlace& place, const Args&... args) {
  using Pieces = std::tuple<detail::piece_t<Args>...>;
  return detail::scatter_into(static_cast<Pieces*>(nullptr), place, std::index_sequence_for<Args...>{}, args...);
}

}}  // namespace fanout::v0
