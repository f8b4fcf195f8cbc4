// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/scatter/shard_place.hpp>
#include <fanout/scatter/split_tree.hpp>
#include <fanout/scatter/splitting.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/rebind.hpp>

namespace fanout { inline namespace v0 {

// Variants of which an alternative is split.

namespace detail {

template <class X>
concept SplitVariant = VariantNode<X> && HasArrayLeaf<X>;

/// A variant of the same alternatives, of which those without arrays are copied, since a variant holds no reference.
template <SplitVariant X>
struct Splitting<X> {
  template <std::size_t I>
  using alternative_t = std::remove_cv_t<typename AlternativesOf<X>::template type<I>>;
  template <class Indices>
  struct pieces_of;
  template <std::size_t... I>
  struct pieces_of<std::index_sequence<I...>> {
    using type = rebind_tuple_t<X, held_piece_t<alternative_t<I>>...>;
    static constexpr bool makeable =
        (std::is_constructible_v<held_piece_t<alternative_t<I>>, piece_t<alternative_t<I>>> && ...);
  };
  using pieces = pieces_of<std::make_index_sequence<AlternativesOf<X>::size>>;
  using piece_type = typename pieces::type;

  static piece_type piece(const X& x, [[maybe_unused]] const ShardPlace& place, const LeafPath& path) {
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
        return piece_type(std::in_place_index<held>,
                          Splitting<alternative_t<held>>::piece(AlternativesOf<X>::template get<held>(x), place, path));
      });
    }
    __builtin_unreachable();  // refused, and this silences what would follow
  }
};

}  // namespace detail
}}  // namespace fanout::v0
