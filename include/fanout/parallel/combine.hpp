// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/memory/output.hpp>
#include <fanout/memory/tensor.hpp>
#include <fanout/parallel/gathering.hpp>
#include <fanout/parallel/reduced.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout::inline v0 {

// Leaves, combined over the shards by psum() and pmean().

namespace detail {

/// A rule that combines the shards' numbers: SumOverShards and what looks like it.
template <class Rule, class T>
concept Combines = requires {
  Rule::name;
}
&&Rule::template takes<T>;

template <class Rule, class X>
  requires(Scalar<X>&& Combines<Rule, X>)
struct Gathering<Rule, X> {
  using type = X;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath&) {
    X result = Rule::template first<X>(pieces[0], place.share(0));
    for (std::size_t i = 1; i < pieces.size(); ++i) result = Rule::template next<X>(result, pieces[i], place.share(i));
    return result;
  }
};

/// Combines the pieces, which show `size` numbers each, into the first `size` of `result`.
template <class Rule, class T, class X>
void combine_into(T* result, std::size_t size, const Pieces<X>& pieces, const GatherPlace& place) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const double share = place.share(i);
    const T* const from = pieces[i].data();
    if (i == 0) {
      for (std::size_t k = 0; k < size; ++k) result[k] = Rule::template first<T>(from[k], share);
    } else {
      for (std::size_t k = 0; k < size; ++k) result[k] = Rule::template next<T>(result[k], from[k], share);
    }
  }
}

template <class Rule, class X, class T, std::size_t R>
struct CombineArrays {
  using type = Tensor<T, R>;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    const Extents<R> extents = pieces[0].extents();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      check_space(pieces[i].space(), place, path, i);
      if (!(pieces[i].extents() == extents)) {
        refuse_extents(place, path, i, to_string(extents), to_string(pieces[i].extents()),
                       std::string(Rule::name) + " needs arrays of the same extents from every replica");
      }
    }
    type result = type::uninitialized(extents, {});
    combine_into<Rule, T>(result.data(), result.size(), pieces, place);
    return result;
  }
};

template <class T, std::size_t R, Combines<T> Rule>
struct Gathering<Rule, Tensor<T, R>> : CombineArrays<Rule, Tensor<T, R>, T, R> {};
template <class T, std::size_t R, class Rule>
  requires Combines<Rule, std::remove_cv_t<T>>
struct Gathering<Rule, View<T, R>> : CombineArrays<Rule, View<T, R>, std::remove_cv_t<T>, R> {
};
template <class T, std::size_t R, Combines<T> Rule>
struct Gathering<Rule, Output<T, R>> : CombineArrays<Rule, Output<T, R>, T, R> {};

/// Vectors and spans of numbers, element by element, into a vector.
template <class Rule, class X, class T>
struct CombineElements {
  using type = std::vector<T>;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      if (pieces[i].size() != pieces[0].size()) {
        refuse_extents(place, path, i, std::to_string(pieces[0].size()) + " elements", std::to_string(pieces[i].size()),
                       std::string(Rule::name) + " needs as many elements from every replica");
      }
    }
    type result(pieces[0].size());
    combine_into<Rule, T>(result.data(), result.size(), pieces, place);
    return result;
  }
};

template <Scalar T, class Allocator, Combines<T> Rule>
struct Gathering<Rule, std::vector<T, Allocator>> : CombineElements<Rule, std::vector<T, Allocator>, T> {};
template <class T, std::size_t N, class Rule>
  requires Combines<Rule, std::remove_cv_t<T>>
struct Gathering<Rule, std::span<T, N>> : CombineElements<Rule, std::span<T, N>, std::remove_cv_t<T>> {
};

/// psum() and pmean() choose the rule for all that is below them.
template <class Outer, class Rule, class X>
  requires Gatherable<Rule, X>
struct Gathering<Outer, Reduced<Rule, X>> {
  using type = gathered_under_t<Rule, X>;

  static type gather(Pieces<Reduced<Rule, X>>& pieces, const GatherPlace& place, const LeafPath& path) {
    Pieces<X> values(pieces, pieces.owned(), [](const auto& x) -> const X& { return x.value; });
    return Gathering<Rule, X>::gather(values, place, path);
  }
};

}  // namespace detail
}  // namespace fanout::inline v0
