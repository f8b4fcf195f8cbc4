// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/array/strided_view.hpp>
#include <fanout/model/forward.hpp>
#include <fanout/scatter/checked_scatter.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/scatter/shard_inputs.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

// A `forward` that takes a StridedView instead of a View receives a StridedView, so that nothing is packed for it.

namespace detail {

template <class X, bool Strided>
struct PieceAs {
  using type = piece_t<X>;
  static type make(const X& x, const ScatterTarget& place, const LeafPath& path) { return piece_of<X>(x, place, path); }
};
template <Contiguous X>
struct PieceAs<X, true> {
  using type = StridedView<const typename X::value_type, X::rank>;
  static type make(const X& x, const ScatterTarget& place, const LeafPath& path) {
    return strided_part(x, place, path);
  }
};
template <class X>
  requires(!Contiguous<X>)
struct PieceAs<X, true> {
  using type = decltype(scatter_traits<X>::strided_piece(std::declval<const X&>(), std::declval<const ScatterTarget&>(),
                                                         std::declval<const LeafPath&>()));
  static type make(const X& x, const ScatterTarget& place, const LeafPath& path) {
    return scatter_traits<X>::strided_piece(x, place, path);
  }
};

template <class X>
concept MayBeStrided = Contiguous<X> || requires(const X& x, const ScatterTarget& place, const LeafPath& path) {
  scatter_traits<X>::strided_piece(x, place, path);
};

inline constexpr std::size_t most_arguments = 64;

/// A bit for each argument that may be strided.
template <class... Args>
constexpr std::uint64_t strided_bits() {
  static_assert(sizeof...(Args) <= most_arguments,
                "fanout: a call takes 64 arguments at most; put some of them into a tuple, a dict or a struct");
  std::uint64_t bits = 0;
  [[maybe_unused]] std::uint64_t bit = 1;
  ((bits |= MayBeStrided<std::remove_cvref_t<Args>> ? bit : 0U, bit <<= 1U), ...);
  return bits;
}

/// The pieces of the arguments, strided if `Mask` has their bit.
template <class Inputs, std::uint64_t Mask>
struct PiecesAs;
template <class... Args, std::uint64_t Mask>
struct PiecesAs<ShardInputs<Args...>, Mask> {
  template <std::size_t I>
  static constexpr bool has_bit = (Mask >> (I % most_arguments) & 1U) != 0;  // more are refused, with one error

  template <class Indices>
  struct with;
  template <std::size_t... I>
  struct with<std::index_sequence<I...>> {
    using type = std::tuple<typename PieceAs<std::remove_cvref_t<Args>, has_bit<I>>::type...>;

    static type make([[maybe_unused]] const std::tuple<Args...>& arguments,
                     [[maybe_unused]] const ScatterTarget& place) {
      return {PieceAs<std::remove_cvref_t<Args>, has_bit<I>>::make(std::get<I>(arguments), place, input_path<I>)...};
    }
  };
  using all = with<std::index_sequence_for<Args...>>;
  using type = typename all::type;

  static type make(const std::tuple<Args...>& arguments, const ScatterTarget& place) {
    return all::make(arguments, place);
  }
};

template <class M, class Ctx, class Pieces>
inline constexpr bool takes_pieces = false;
template <class M, class Ctx, class... P>
inline constexpr bool takes_pieces<M, Ctx, std::tuple<P...>> = Forwardable<M, Ctx, P...>;

template <class M, class Ctx, class Inputs, std::uint64_t Bits, std::uint64_t Mask>
consteval std::uint64_t find_strided() {
  if constexpr (takes_pieces<M, Ctx, typename PiecesAs<Inputs, Mask>::type>) {
    return Mask;
  } else if constexpr (Mask == Bits) {
    return 0;  // nothing fits: the error shows the packed pieces
  } else {
    // The next subset. Of more than 8 arguments that may be strided, either none or all are.
    return find_strided < M, Ctx, Inputs, Bits, std::popcount(Bits) <= 8 ? (Mask - Bits) & Bits : Bits > ();
  }
}

template <class M, class Ctx, class Inputs, std::uint64_t Bits>
struct PiecesChosen : PiecesAs<Inputs, find_strided<M, Ctx, Inputs, Bits, 0>()> {};
template <class M, class Ctx, class Inputs>
struct PiecesChosen<M, Ctx, Inputs, 0> : PiecesAs<Inputs, 0> {};

/// The pieces that a model receives of these inputs: each packed if it takes it so, otherwise strided.
template <class M, class Ctx, class Inputs>
struct PiecesFor;
template <class M, class Ctx, class... Args>
struct PiecesFor<M, Ctx, ShardInputs<Args...>> : PiecesChosen<M, Ctx, ShardInputs<Args...>, strided_bits<Args...>()> {};

}  // namespace detail
}}  // namespace fanout::v0
