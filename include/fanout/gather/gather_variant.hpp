// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/gather/gather_tree.hpp>
#include <fanout/gather/gathering.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/rebind.hpp>

namespace fanout { inline namespace v0 {

// Variants, of which all shards hold the same alternative.

namespace detail {

template <class Rule, class X, class Indices>
struct GatheringVariant {};
template <class Rule, class X, std::size_t... I>
  requires(Gatherable<Rule, typename AlternativesOf<X>::template type<I>>&&...)
struct GatheringVariant<Rule, X, std::index_sequence<I...>> {
  using type = rebind_tuple_t<X, gathered_under_t<Rule, typename AlternativesOf<X>::template type<I>>...>;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    for (std::size_t i = 0; i < pieces.size(); ++i) check_alternative(pieces, i, place, path);
    return at_alternative(pieces[0], [&](auto at) {
      constexpr std::size_t held = decltype(at)::value;
      return type(std::in_place_index<held>, gather_inside<Rule, typename AlternativesOf<X>::template type<held>>(
                                                 pieces, place, path, [](const X& x) -> const auto& {
                                                   return AlternativesOf<X>::template get<held>(x);
                                                 }));
    });
  }

 private:
  static std::string describe(const X& variant) {
    return at_alternative(variant, [](auto at) {
      return "alternative " + std::to_string(at) + ", " +
             type_name<typename AlternativesOf<X>::template type<decltype(at)::value>>();
    });
  }

  static void check_alternative(const Pieces<X>& pieces, std::size_t i, const GatherPlace& place,
                                const LeafPath& path) {
    if (pieces[i].valueless_by_exception()) {
      throw StructureMismatch(explain({.what = "a replica returned a variant without a value",
                                       .where = to_string(path),
                                       .expected = "one of its alternatives",
                                       .found = "none from " + place.describe(i),
                                       .advice = "an exception left it so; assign a value before it is returned"}));
    }
    if (pieces[i].index() != pieces[0].index()) {
      refuse_structure(place, path, i, "replicas returned variants with different alternatives", describe(pieces[0]),
                       describe(pieces[i]));
    }
  }
};

template <class Rule, VariantNode X>
struct Gathering<Rule, X> : GatheringVariant<Rule, X, std::make_index_sequence<AlternativesOf<X>::size>> {};

}  // namespace detail
}}  // namespace fanout::v0
