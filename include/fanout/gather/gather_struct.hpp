// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/gather/gather_tree.hpp>
#include <fanout/gather/gathering.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// Structs, put together from what their fields are gathered to.

namespace detail {

/// A field that can hold what it is gathered to. The types must be the same: a std::span would take a std::vector, and
/// then show what is gone.
template <class Rule, class Field>
concept HoldsGathered = Gatherable<Rule, Field> && std::same_as<gathered_under_t<Rule, Field>, std::remove_cv_t<Field>>;

template <class Rule, class X, class Indices>
struct GatheringStruct {};
template <class Rule, class X, std::size_t... I>
  requires(HoldsGathered<Rule, typename FieldsOf<X>::template type<I>>&&...)
struct GatheringStruct<Rule, X, std::index_sequence<I...>> {
  using type = X;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    return FieldsOf<X>::make([&](auto index) { return gather_field<decltype(index)::value>(pieces, place, path); });
  }

 private:
  template <std::size_t F>
  static auto gather_field(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    return gather_inside<Rule, typename FieldsOf<X>::template type<F>>(
        pieces, place, field_path<X, F>(path),
        [](const X& x) -> const auto& { return FieldsOf<X>::template get<F>(x); });
  }
};

template <class Rule, StructNode X>
  requires Makeable<X>
struct Gathering<Rule, X> : GatheringStruct<Rule, X, std::make_index_sequence<FieldsOf<X>::size>> {
};

}  // namespace detail
}}  // namespace fanout::v0
