// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <fanout/base/error.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// Visits the combined fields of several models at the same time.

namespace detail {

struct CombinedFieldsOf {
  static constexpr bool in_const = false;
  static constexpr bool in_own = false;
  template <class Declared>
  static constexpr bool is = is_reduced<Declared>;
};
template <class M>
inline constexpr bool has_combined_fields = holds_field<CombinedFieldsOf, M>();

[[noreturn]] inline void refuse_places(const LeafPath& path) {
  throw StructureMismatch(explain({.what = "fields that are combined after the call do not stand at the same places",
                                   .where = to_string(path),
                                   .expected = "as many of them in the original and in every replica",
                                   .advice = "add and remove them in update(), not in forward"}));
}

template <class X, class F>
void visit_combined(const ShardResults<X>& models, const LeafPath& path, const F& f);

template <class X>
void check_same_places(const ShardResults<X>& models, const LeafPath& path) {
  [[maybe_unused]] const auto must_agree = [&models, &path](const auto& property) {
    for (std::size_t i = 1; i < models.size(); ++i) {
      if (property(models[i]) != property(models[0])) refuse_places(path);
    }
  };
  constexpr ChildKind kind = child_kind<X>;
  if constexpr (kind == ChildKind::map) {
    must_agree([](const X& x) { return x.size(); });
    visit_children<WithPlaces>(models[0], path, [&models](const auto&, const LeafPath& at, const auto& place) {
      for (std::size_t i = 1; i < models.size(); ++i) {
        if (models[i].find(place.key) == models[i].end()) refuse_places(at);
      }
    });
  } else if constexpr (kind == ChildKind::row || kind == ChildKind::sequence) {
    must_agree([](const X& x) { return x.size(); });
  } else if constexpr (kind == ChildKind::optional) {
    must_agree([](const X& x) { return x.has_value(); });
  } else if constexpr (kind == ChildKind::variant) {
    must_agree([](const X& x) { return x.index(); });
  }
}

/// Calls `f(fields, path)` for each combined field of these models of one type. `fields` has the field of each model.
/// Throws StructureMismatch, which names the place, if a model does not have the field there.
template <class X, class F>
void visit_combined(const ShardResults<X>& models, const LeafPath& path, const F& f) {
  if constexpr (is_reduced<X>) {
    f(models, path);
  } else {
    check_same_places(models, path);
    visit_children<WithPlaces>(models[0], path, [&]<class Place>(const auto&, const LeafPath& at, const Place& place) {
      using Child = std::remove_reference_t<typename Place::type>;
      if constexpr (has_combined_fields<Child>) {
        visit_combined(ShardResults<Child>(models, false, [&place](const X& x) -> const Child& { return place(x); }),
                       at, f);
      }
    });
  }
}

}  // namespace detail
}}  // namespace fanout::v0
