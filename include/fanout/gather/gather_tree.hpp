// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/gather/gathering.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/rebind.hpp>

namespace fanout { inline namespace v0 {

// Containers, rebuilt around what is gathered of their elements.

namespace detail {

/// Gathers the elements, of type Element, that `get` finds in the pieces. What is only referred to, or const, is not
/// moved.
template <class Rule, class Element, class X, class Get>
gathered_under_t<Rule, Element> gather_inside(const Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path,
                                              const Get& get) {
  using Plain = std::remove_cvref_t<Element>;
  Pieces<Plain> values(pieces, pieces.owned() && std::is_same_v<Plain, Element>, get);
  return Gathering<Rule, Plain>::gather(values, place, path);
}

template <class Rule, class... K, class... T>
  requires(Gatherable<Rule, T>&&...)
struct Gathering<Rule, Dict<Entry<K, T>...>> {
  using X = Dict<Entry<K, T>...>;
  using type = Dict<Entry<K, gathered_under_t<Rule, T>>...>;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    return {std::tuple<gathered_under_t<Rule, T>...>{gather_entry<K, T>(pieces, place, path)...}};
  }

 private:
  template <class Key, class Value>
  static gathered_under_t<Rule, Value> gather_entry(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    return gather_inside<Rule, Value>(
        pieces, place, LeafPath(path, Key::name()), [](const X& x) -> const auto& { return x[Key{}]; });
  }
};

template <class Rule, class X, class Indices>
struct GatheringTuple {};
template <class Rule, class X, std::size_t... I>
  requires(Gatherable<Rule, std::tuple_element_t<I, X>>&&...)
struct GatheringTuple<Rule, X, std::index_sequence<I...>> {
  using type = rebind_tuple_t<X, gathered_under_t<Rule, std::tuple_element_t<I, X>>...>;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    return type{gather_element<I>(pieces, place, path)...};
  }

 private:
  template <std::size_t E>
  static auto gather_element(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    return gather_inside<Rule, std::tuple_element_t<E, X>>(
        pieces, place, LeafPath(path, E), [](const X& x) -> const auto& { return std::get<E>(x); });
  }
};

template <class Rule, TupleNode X>
struct Gathering<Rule, X> : GatheringTuple<Rule, X, std::make_index_sequence<std::tuple_size_v<X>>> {};

template <class Rule, MapNode X>
  requires Gatherable<Rule, typename X::mapped_type>
struct Gathering<Rule, X> {
  using T = typename X::mapped_type;
  using type = rebind_map_t<X, gathered_under_t<Rule, T>>;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    for (std::size_t i = 1; i < pieces.size(); ++i) check_keys(pieces, i, place, path);
    type result;
    std::size_t position = 0;
    for (const auto& entry : pieces[0]) {
      const auto& key = entry.first;
      const std::string name = key_text(key, position++);
      result.emplace(key, gather_inside<Rule, T>(pieces, place, LeafPath::at_key(path, name),
                                                 [&key](const X& x) -> const T& { return x.find(key)->second; }));
    }
    return result;
  }

 private:
  static std::string missing_from(const X& all, const X& some) {
    std::string text;
    std::size_t position = 0;
    for (const auto& entry : all) {
      const std::string name = key_text(entry.first, position++);
      if (some.find(entry.first) == some.end()) text += (text.empty() ? "" : ", ") + name;
    }
    return text;
  }

  static void check_keys(const Pieces<X>& pieces, std::size_t i, const GatherPlace& place, const LeafPath& path) {
    const std::string missing = missing_from(pieces[0], pieces[i]);
    const std::string extra = missing_from(pieces[i], pieces[0]);
    if (missing.empty() && extra.empty()) return;
    refuse_structure(place, path, i, "replicas returned maps with different keys", "the keys",
                     std::string(missing.empty() ? "" : "no " + missing) +
                         (missing.empty() || extra.empty() ? "" : " and ") + (extra.empty() ? "" : "also " + extra));
  }
};

/// Rows of trees of type Element, which are const or a reference where they are not to be moved from, into a Result.
template <class Rule, class X, class Element, class Result>
struct GatheringRow {
  using type = Result;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      if (pieces[i].size() != pieces[0].size()) {
        refuse_structure(place, path, i, "replicas returned vectors of different lengths",
                         std::to_string(pieces[0].size()) + " trees", std::to_string(pieces[i].size()),
                         "return as many from every replica, or rows(std::move(v)) if the elements are rows");
      }
    }
    type result;
    if constexpr (requires { result.reserve(std::size_t{}); }) result.reserve(pieces[0].size());
    for (std::size_t k = 0; k < pieces[0].size(); ++k) {
      result.push_back(gather_inside<Rule, Element>(
          pieces, place, LeafPath(path, k), [k](const X& x) -> const auto& { return x[k]; }));
    }
    return result;
  }
};

/// A range with elements that can be referred to, which those of a `std::vector<bool>` cannot.
template <class X>
concept RefersToElements = std::is_reference_v<decltype(std::declval<const X&>()[0])>;

/// A vector or a span that is gathered element by element: one of trees, and under some rules one of rows, too.
template <class Rule, class X>
concept GatheredInside = (VectorNode<X> || SpanNode<X> ||
                          ((owns_elements<X> || shows_elements<X>)&&!takes_rows<Rule>)) &&
                         RefersToElements<X>&& Gatherable<Rule, typename X::value_type>;

template <class X>
concept GrowsAtItsEnd = requires(X& x, typename X::value_type&& value) {
  x.push_back(static_cast<typename X::value_type&&>(value));
};

template <class Rule, class X>
  requires(GatheredInside<Rule, X>&& GrowsAtItsEnd<X>)
struct Gathering<Rule, X> : GatheringRow<Rule, X, typename X::value_type,
                                         rebind_element_t<X, gathered_under_t<Rule, typename X::value_type>>> {};

template <class Rule, class X>  // a span, whose elements belong to someone else
  requires(GatheredInside<Rule, X> && !GrowsAtItsEnd<X>)
struct Gathering<Rule, X> : GatheringRow<Rule, X, const typename X::value_type&,
                                         std::vector<gathered_under_t<Rule, typename X::value_type>>> {};

template <class Rule, OptionalNode X>
  requires(!GatheredInside<Rule, X> && !MapNode<X> && Gatherable<Rule, typename X::value_type>)
struct Gathering<Rule, X> {
  using T = typename X::value_type;
  using type = rebind_element_t<X, gathered_under_t<Rule, T>>;

  static type gather(Pieces<X>& pieces, const GatherPlace& place, const LeafPath& path) {
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      if (pieces[i].has_value() != pieces[0].has_value()) {
        refuse_structure(place, path, i, "some replicas returned a value and some did not",
                         pieces[0].has_value() ? "a value" : "none", pieces[i].has_value() ? "a value" : "none");
      }
    }
    if (!pieces[0].has_value()) return {};
    return type(gather_inside<Rule, T>(pieces, place, path, [](const X& x) -> const T& { return *x; }));
  }
};

}  // namespace detail
}}  // namespace fanout::v0
