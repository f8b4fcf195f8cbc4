// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/array/output.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/text.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/direct_sums.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/join_pieces.hpp>
#include <fanout/gather/reduction.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/number.hpp>

namespace fanout { inline namespace v0 {

// Combines leaves over the shards: psum(), pmean(), pmax(), pmin(), reduce().

namespace detail {

/// A reduction rule that combines numbers of type T.
template <class Rule, class T>
concept Combines = requires {
  Rule::name;
}
&&Rule::template takes<T>;

/// Calls `begin(i, share)` for the first shard i that counts under the rule. Then calls `add(i, share)` for the others
/// that count, in row order.
template <class Rule, class Place, class Begin, class Add>
void fold_shards(const Place& place, const Begin& begin, const Add& add) {
  const std::size_t first = Rule::counts_empty ? 0 : place.first();
  begin(first, place.share(first));
  for (std::size_t i = first + 1; i < place.size(); ++i) {
    if (Rule::counts_empty || place.counts(i)) add(i, place.share(i));
  }
}

/// True if numbers are accumulated in a wider type, and rounded once at the end. Floats of few shards are not.
template <class Rule, class T, class Place>
bool accumulates_wide(const Place& place) {
  if constexpr (std::same_as<typename Rule::template accumulated<T>, T>) {
    return false;
  } else {
    return !std::same_as<typename real_of<T>::type, float> || place.size() > added_as_floats;
  }
}

template <class Rule, class T, class A, class Place, class Numbers>
void fold_numbers(A* result, std::size_t size, const Place& place, const Numbers& numbers) {
  fold_shards<Rule>(
      place,
      [&](std::size_t i, double share) {
        const T* const from = numbers(i);
        for (std::size_t k = 0; k < size; ++k) result[k] = Rule::template first<T, A>(from[k], share);
      },
      [&](std::size_t i, double share) {
        const T* const from = numbers(i);
        for (std::size_t k = 0; k < size; ++k) result[k] = Rule::template next<T, A>(result[k], from[k], share);
      });
}

/// Combines `size` numbers of each shard, which begin at `numbers(i)`, into the first `size` of `result`. `place` knows
/// the shards: a GatherTarget.
template <class Rule, class T, class Place, class Numbers>
void combine_into(T* result, std::size_t size, const Place& place, const Numbers& numbers) {
  if (!accumulates_wide<Rule, T>(place)) return fold_numbers<Rule, T>(result, size, place, numbers);
  constexpr std::size_t block = 256;  // stays in the L1 cache while all shards are added
  typename Rule::template accumulated<T> wide[block];
  for (std::size_t begin = 0; begin < size; begin += block) {
    const std::size_t count = size - begin < block ? size - begin : block;
    fold_numbers<Rule, T>(wide, count, place, [&](std::size_t i) { return numbers(i) + begin; });
    for (std::size_t k = 0; k < count; ++k) result[begin + k] = narrowed<T>(wide[k]);
  }
}

template <class Rule, class X>
  requires(Scalar<X>&& Combines<Rule, X>)
struct gather_defaults<Rule, X> {
  using type = X;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath&) {
    X result{};
    combine_into<Rule>(&result, 1, place, [&](std::size_t i) { return &pieces[i]; });
    return result;
  }
};

template <class Rule, class X, class T, std::size_t R>
struct CombineArrays {
  using type = Tensor<T, R>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    if constexpr (R != 0) {  // an array of one shard is the result
      if (pieces.size() == 1 && place.batch->other_shards == 0 && place.batch->other_rows == 0) {
        return gather_traits<rules::Concatenate, X>::gather(pieces, place.on_axis(0), path);
      }
    }
    const Extents<R> extents = pieces[0].extents();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      check_space(pieces[i].space(), place, path, i);
      if (!(pieces[i].extents() == extents)) {
        refuse_extents(place, path, i, to_string(extents), to_string(pieces[i].extents()),
                       Text() << Rule::name << " needs arrays of the same extents from every replica");
      }
    }
    if (place.target.space == host_memory) return combined_on_host(pieces, place);
    type result = type::uninitialized(extents, place.target);
    if (add_on_devices(pieces, place, result)) return result;
    const type here = combined_on_host(pieces, place);
    backend::transfer(place.target, result.data(), host_memory, here.data(), here.size() * sizeof(T));
    return result;
  }

 private:
  /// True if the devices have added the arrays, as Options::collectives says, and have written the sum to `result`.
  static bool add_on_devices([[maybe_unused]] const ShardResults<X>& pieces, [[maybe_unused]] const GatherTarget& place,
                             [[maybe_unused]] type& result) {
    constexpr bool is_mean = std::same_as<Rule, rules::Mean>;
    if constexpr ((is_mean || std::same_as<Rule, rules::Sum>)&&std::is_arithmetic_v<T>) {
      if (place.sums == nullptr || !place.sums->has_transport()) return false;
      backend::ResultSum sum{.type = &added_by_devices<T>, .count = result.size(), .to = result.data()};
      InlineArray<backend::WeightedArray> arrays(pieces.size());
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (is_mean && !place.counts(i)) return false;  // it may be NaN
        arrays[i] = {pieces[i].data(), pieces[i].space(), is_mean ? place.share(i) : 1};
      }
      while (sum.root < arrays.size() && !(arrays[sum.root].space == place.target.space)) ++sum.root;
      sum.arrays = {arrays.data(), arrays.size()};
      return sum.root < arrays.size() && place.sums->add(sum);
    } else {
      return false;
    }
  }

  /// Combines on the host, whichever devices computed the numbers. So the order is always the same, and so is the
  /// result.
  static type combined_on_host(const ShardResults<X>& pieces, const GatherTarget& place) {
    type result = type::uninitialized(pieces[0].extents(), {});
    InlineArray<PieceBytes> arrays = bytes_of<T, R>(pieces);
    const MovedPieces here(arrays, {});
    combine_into<Rule, T>(result.data(), result.size(), place,
                          [&](std::size_t i) { return static_cast<const T*>(arrays[i].data); });
    return result;
  }
};

template <class T, std::size_t R, Combines<T> Rule>
struct gather_defaults<Rule, Tensor<T, R>> : CombineArrays<Rule, Tensor<T, R>, T, R> {};
template <class T, std::size_t R, class Rule>
  requires Combines<Rule, std::remove_cv_t<T>>
struct gather_defaults<Rule, View<T, R>> : CombineArrays<Rule, View<T, R>, std::remove_cv_t<T>, R> {
};
template <class T, std::size_t R, Combines<T> Rule>
struct gather_defaults<Rule, Output<T, R>> : CombineArrays<Rule, Output<T, R>, T, R> {};

/// Combines vectors and spans of numbers into a vector, element by element.
template <class Rule, class X, class T>
struct CombineElements {
  using type = std::vector<T>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      if (pieces[i].size() != pieces[0].size()) {
        refuse_extents(place, path, i, Text() << pieces[0].size() << " elements", Text() << pieces[i].size(),
                       Text() << Rule::name << " needs the same number of elements from every replica");
      }
    }
    type result(pieces[0].size());
    combine_into<Rule, T>(result.data(), result.size(), place, [&](std::size_t i) { return pieces[i].data(); });
    return result;
  }
};

template <ArrayElement T, class Allocator, Combines<T> Rule>
struct gather_defaults<Rule, std::vector<T, Allocator>> : CombineElements<Rule, std::vector<T, Allocator>, T> {};
template <class T, std::size_t N, class Rule>
  requires Combines<Rule, std::remove_cv_t<T>>
struct gather_defaults<Rule, std::span<T, N>> : CombineElements<Rule, std::span<T, N>, std::remove_cv_t<T>> {
};

/// A function of two values of type X that are not numbers, for example structs or tuples. It must not be a template:
/// such a function is called for each number instead.
template <class F, class X>
concept CombinesWhole = !Scalar<X> && Outlasts<X> && requires(const X& x) {
  &F::operator();
  { F()(x, x) } -> std::same_as<X>;
};

template <class F, class X>
  requires CombinesWhole<F, X>
struct gather_chosen<rules::Fold<F>, X> {
  using type = X;
  using combines_whole = F;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath&) {
    const std::size_t first = place.first();
    type result = pieces.owned() ? X(std::move(pieces.take(first))) : X(pieces[first]);
    for (std::size_t i = first + 1; i < pieces.size(); ++i) {
      if (place.counts(i)) result = F()(std::move(result), pieces[i]);
    }
    return result;
  }
};

}  // namespace detail
}}  // namespace fanout::v0
