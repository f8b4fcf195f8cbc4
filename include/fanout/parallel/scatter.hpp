// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include <fanout/memory/tensor.hpp>
#include <fanout/memory/vector_leaf.hpp>
#include <fanout/parallel/broadcast.hpp>
#include <fanout/parallel/each.hpp>
#include <fanout/parallel/inout.hpp>
#include <fanout/parallel/range.hpp>
#include <fanout/parallel/rows.hpp>
#include <fanout/parallel/shard_place.hpp>
#include <fanout/parallel/split_on.hpp>
#include <fanout/parallel/split_struct.hpp>
#include <fanout/parallel/split_tree.hpp>
#include <fanout/parallel/split_variant.hpp>
#include <fanout/parallel/splitting.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout::v0 {

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
std::tuple<detail::piece_t<Args>...> scatter(const ShardPlace& place, const Args&... args) {
  using Pieces = std::tuple<detail::piece_t<Args>...>;
  return detail::scatter_into(static_cast<Pieces*>(nullptr), place, std::index_sequence_for<Args...>{}, args...);
}

}  // namespace fanout::v0
