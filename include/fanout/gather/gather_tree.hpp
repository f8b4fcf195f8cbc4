// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// Gathers nodes: first each child, then a node of the gathered children.

namespace detail {

// check_children() throws StructureMismatch if shard i returned a node with other children than the first shard.

template <MapNode X>
std::string missing_from(const X& all, const X& some) {
  Text text;
  std::size_t position = 0;
  for (const auto& entry : all) {
    const std::string name = key_text(entry.first, position++);
    if (some.find(entry.first) == some.end()) text << (text.empty() ? "" : ", ") << name;
  }
  return text;
}

template <MapNode X>
void check_children(const ShardResults<X>& pieces, std::size_t i, const GatherTarget& place, const LeafPath& path) {
  check_keys(pieces[i], path);
  const std::string missing = missing_from(pieces[0], pieces[i]);
  const std::string extra = missing_from(pieces[i], pieces[0]);
  if (missing.empty() && extra.empty()) return;
  Text found;
  if (!missing.empty()) found << "no " << missing;
  if (!missing.empty() && !extra.empty()) found << " and ";
  if (!extra.empty()) found << "also " << extra;
  refuse_structure(
      place, path, i, "replicas returned maps with different keys", "the keys", found,
      "return the same keys from every replica, or merge the maps: return reduce(x, f) with an f that takes "
      "two maps and returns one");
}

template <class X>
  requires(child_kind<X> == ChildKind::row)
void check_children(const ShardResults<X>& pieces, std::size_t i, const GatherTarget& place, const LeafPath& path) {
  if (pieces[i].size() == pieces[0].size()) return;
  refuse_structure(place, path, i, "replicas returned vectors of different lengths",
                   Text() << pieces[0].size() << " trees", Text() << pieces[i].size(),
                   "return the same number from every replica, or rows(std::move(v)) if the elements are rows");
}

template <class X>
  requires(child_kind<X> == ChildKind::optional)
void check_children(const ShardResults<X>& pieces, std::size_t i, const GatherTarget& place, const LeafPath& path) {
  if (pieces[i].has_value() == pieces[0].has_value()) return;
  refuse_structure(place, path, i, "some replicas returned a value and some did not",
                   pieces[0].has_value() ? "a value" : "none", pieces[i].has_value() ? "a value" : "none");
}

template <VariantNode X>
std::string describe_alternative(const X& variant) {
  return at_alternative(variant, [](auto at) {
    return Text() << "alternative " << at << ", "
                  << type_name<typename AlternativesOf<X>::template type<decltype(at)::value>>();
  });
}

template <VariantNode X>
void check_children(const ShardResults<X>& pieces, std::size_t i, const GatherTarget& place, const LeafPath& path) {
  if (pieces[i].valueless_by_exception()) {
    throw StructureMismatch(
        explain({.what = "a replica returned a variant without a value",
                 .where = to_string(path),
                 .expected = "one of its alternatives",
                 .found = Text() << "none from " << place.describe(i),
                 .advice = "assign a value before it is returned: an exception has left it without one"}));
  }
  if (pieces[i].index() != pieces[0].index()) {
    refuse_structure(place, path, i, "replicas returned variants with different alternatives",
                     describe_alternative(pieces[0]), describe_alternative(pieces[i]));
  }
}

/// Gathers one child, of type Child, that `get` finds in each piece. A const child or a reference is copied, not moved.
template <class Rule, class Child, class X, class Get>
gathered_under_t<Rule, Child> gather_inside(const ShardResults<X>& pieces, const GatherTarget& place,
                                            const LeafPath& path, const Get& get) {
  using Plain = std::remove_cvref_t<Child>;
  ShardResults<Plain> values(pieces, pieces.owned() && std::is_same_v<Plain, Child>,
                             [&get](const X& x) -> const Plain& { return get(x); });
  return gather_traits<Rule, Plain>::gather(values, place, path);
}

/// Returns a node of type Result that holds the gathered children.
template <class Rule, class Result, class X>
Result gather_children(const ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
  if constexpr (requires { check_children(pieces, std::size_t{}, place, path); }) {
    for (std::size_t i = 0; i < pieces.size(); ++i) check_children(pieces, i, place, path);
  }
  return rebuild<Result, WithPlaces>(pieces[0], path, [&]<class At>(const auto&, const LeafPath& at, const At& child) {
    return gather_inside<Rule, typename At::type>(pieces, place, at, child);
  });
}

template <class Rule>
struct AsGathered {
  template <class T>
  using type = gathered_under_t<Rule, T>;
  template <class T>
  static constexpr bool is = Gatherable<Rule, T>;
};

/// A node that is gathered child by child. A vector or a span of rows is such a node only if the rule does not take
/// rows.
template <class Rule, class X>
concept GatheredInside = Rebuildable<X> && !StructNode<X> &&
                         (!ArrayLeaf<X> || ((owns_elements<X> || shows_elements<X>)&&!takes_rows<Rule>)) &&
                         all_children<AsGathered<Rule>, X>;

template <class Rule, class X>
  requires GatheredInside<Rule, X>
struct gather_defaults<Rule, X> {
  using type = rebuilt_t<X, AsGathered<Rule>>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    return gather_children<Rule, type>(pieces, place, path);
  }
};

/// A field that can hold its gathered value. The types must be the same: a std::span would accept a std::vector, and
/// then dangle.
template <class Rule, class Field>
concept HoldsGathered = Gatherable<Rule, Field> && std::same_as<gathered_under_t<Rule, Field>, std::remove_cv_t<Field>>;

template <class Rule>
struct FieldsHoldGathered {
  template <class Field>
  static constexpr bool is = HoldsGathered<Rule, Field>;
};

template <class Rule, StructNode X>
  requires(Makeable<X> && !InsideItself<X, takes_rows<Rule>> && all_children<FieldsHoldGathered<Rule>, X>)
struct gather_defaults<Rule, X> {
  using type = X;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    return gather_children<Rule, X>(pieces, place, path);
  }
};

}  // namespace detail
}}  // namespace fanout::v0
