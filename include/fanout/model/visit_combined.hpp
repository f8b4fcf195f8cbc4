// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/gather/pieces.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// The fields of a model that are combined after a call, found in several models at the same time.

namespace detail {

template <class X>
inline constexpr bool is_reduced = false;
template <class Rule, class T>
inline constexpr bool is_reduced<ReducedMember<Rule, T>> = true;

struct CombinedFieldsOf {
  static constexpr bool in_const = false;
  static constexpr bool in_own = false;
  template <class Declared>
  static constexpr bool is = is_reduced<Declared>;
};
template <class M>
inline constexpr bool has_combined_fields = holds_field<CombinedFieldsOf, M>();

template <std::same_as<LeafPath> Path>
[[noreturn]] void refuse_places(const Path& path) {
  throw StructureMismatch(explain({.what = "fields that are combined after the call do not stand at the same places",
                                   .where = to_string(path),
                                   .expected = "as many of them in the original and in every replica",
                                   .advice = "let forward add and remove none; update() may"}));
}

template <class X, class F>
void visit_combined(const Pieces<X>& models, const LeafPath& path, const F& f);

/// Goes on at an element that is declared as Element, and that `get` finds.
template <class Element, class X, class F, class Get>
void visit_combined_inside(const Pieces<X>& models, const LeafPath& path, const F& f, const Get& get) {
  if constexpr (has_combined_fields<Element>) visit_combined(Pieces<Element>(models, false, get), path, f);
}

template <class... K, class... T, class F>
void visit_combined_entries(const Pieces<Dict<Entry<K, T>...>>& models, const LeafPath& path, const F& f) {
  using X = Dict<Entry<K, T>...>;
  constexpr auto get = []<class Key>(Key) {
    return [](const X& x) -> const auto& { return x[Key{}]; };
  };
  (visit_combined_inside<T>(models, LeafPath(path, K::name()), f, get(K{})), ...);
}

template <class X, class F, std::size_t... I>
void visit_combined_elements(const Pieces<X>& models, const LeafPath& path, const F& f, std::index_sequence<I...>) {
  constexpr auto get = []<std::size_t At>(std::integral_constant<std::size_t, At>) {
    return [](const X& x) -> const auto& { return std::get<At>(x); };
  };
  (visit_combined_inside<std::tuple_element_t<I, X>>(models, LeafPath(path, I), f,
                                                     get(std::integral_constant<std::size_t, I>())),
   ...);
}

template <class X, class F, std::size_t... I>
void visit_combined_fields(const Pieces<X>& models, const LeafPath& path, const F& f, std::index_sequence<I...>) {
  constexpr auto get = []<std::size_t At>(std::integral_constant<std::size_t, At>) {
    return [](const X& x) -> const auto& { return FieldsOf<X>::template get<At>(x); };
  };
  (visit_combined_inside<typename FieldsOf<X>::template type<I>>(models, field_path<X, I>(path), f,
                                                                 get(std::integral_constant<std::size_t, I>())),
   ...);
}

/// Calls `f(fields, path)` for each such field of these models of one type, with what stands at its place in each model.
/// Throws StructureMismatch, and names the place, where it does not stand in all of them.
template <class X, class F>
void visit_combined(const Pieces<X>& models, const LeafPath& path, const F& f) {
  [[maybe_unused]] const X& first = models[0];
  [[maybe_unused]] const auto must_agree = [&models, &path](const auto& property) {
    for (std::size_t i = 1; i < models.size(); ++i) {
      if (property(models[i]) != property(models[0])) refuse_places(path);
    }
  };
  if constexpr (is_reduced<X>) {
    f(models, path);
  } else if constexpr (DictNode<X>) {
    visit_combined_entries(models, path, f);
  } else if constexpr (MapNode<X>) {
    must_agree([](const X& x) { return x.size(); });
    std::size_t position = 0;
    for (const auto& entry : first) {
      const auto& key = entry.first;
      const std::string name = key_text(key, position++);
      const LeafPath at = LeafPath::at_key(path, name);
      for (std::size_t i = 1; i < models.size(); ++i) {
        if (models[i].find(key) == models[i].end()) refuse_places(at);
      }
      visit_combined_inside<typename X::mapped_type>(
          models, at, f, [&key](const X& x) -> const auto& { return x.find(key)->second; });
    }
  } else if constexpr (ElementSequence<X>) {
    must_agree([](const X& x) { return x.size(); });
    for (std::size_t k = 0; k < first.size(); ++k) {
      visit_combined_inside<typename X::value_type>(
          models, LeafPath(path, k), f, [k](const X& x) -> const auto& { return x[k]; });
    }
  } else if constexpr (OptionalNode<X>) {
    must_agree([](const X& x) { return x.has_value(); });
    if (!first.has_value()) return;
    visit_combined_inside<typename X::value_type>(
        models, path, f, [](const X& x) -> const auto& { return *x; });
  } else if constexpr (TupleNode<X>) {
    visit_combined_elements(models, path, f, std::make_index_sequence<std::tuple_size_v<X>>());
  } else if constexpr (VariantNode<X>) {
    must_agree([](const X& x) { return x.index(); });
    if (first.valueless_by_exception()) return;
    at_alternative(first, [&](auto place) {
      constexpr std::size_t at = decltype(place)::value;
      visit_combined_inside<typename AlternativesOf<X>::template type<at>>(
          models, path, f, [](const X& x) -> const auto& { return AlternativesOf<X>::template get<at>(x); });
    });
  } else if constexpr (HasFields<X>) {
    visit_combined_fields(models, path, f, std::make_index_sequence<FieldsOf<X>::size>());
  }
}

}  // namespace detail
}}  // namespace fanout::v0
