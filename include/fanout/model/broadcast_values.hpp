// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>

#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/collective/visit_elements.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/model/shared.hpp>
#include <fanout/model/slice_place.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// The values of a model that one process gives to all others.

/// Fields that stay as they are: those that cannot be written, and those that are not the model's own.
template <class X>
inline constexpr bool stays_with_process = std::is_const_v<X> || is_no_model_value<X>;

template <class X>
inline constexpr bool can_be_broadcast = false;

/// Calls `f(elements, path)` for each array and number of a model.
template <class X, class F>
void visit_model_values(X& value, const LeafPath& path, const F& f) {
  if constexpr (stays_with_process<X>) {
  } else if constexpr (requires { []<class Rule, class T>(ReducedMember<Rule, T>&) {}(value); }) {
    visit_model_values(value.value, path, f);
  } else if constexpr (is_slice<X>) {
    visit_model_values(value.whole(), path, f);
  } else if constexpr (OneArray<X>) {
    if constexpr (!std::is_const_v<element_of_t<X>>) visit_elements_of(value, path, f);
  } else if constexpr (Rebuildable<X>) {
    check_compared_keys<X>(value, path);
    visit_children(value, path, [&f](auto& child, const LeafPath& at, auto) { visit_model_values(child, at, f); });
  } else {
    static_assert(can_be_broadcast<X>,
                  "fanout: broadcast_from() needs a model of arrays, numbers, and structs, tuples, vectors and maps of "
                  "these (this diagnostic shows what it cannot send); a class with private members, base classes or "
                  "constructors lists its fields (tree/fields.hpp)");
  }
}

inline InvalidArgument no_such_root(const backend::ProcessRanks& ranks, std::size_t root) {
  return InvalidArgument(explain({.what = "a root that is no rank",
                                  .where = "broadcast_from",
                                  .expected = Text() << "a rank below " << ranks.size(),
                                  .found = Text() << root}));
}

/// Gives the values of the root's model to the models of all other processes. All of them do this at the same time, or
/// until `patience` is over. `number`: of the model among those of all processes.
template <class M>
void broadcast_values(M& model, const backend::ProcessRanks& ranks, std::uint32_t number, std::size_t root,
                      const Duration& patience) {
  const auto visit = [&model](const auto& f) {
    visit_model_values(model, LeafPath("model"), [&f]<class T>(const Elements<T>& elements, const LeafPath& path) {
      f(rank_fold<FoldOverRanks<FirstOverRanks, T>, false, T>, elements, path);
    });
  };
  std::string name;
  std::exception_ptr failure;
  try {  // others wait for this process, so it must not leave by an exception
    if (root >= ranks.size()) throw no_such_root(ranks, root);
    name = Text() << "broadcast_from(" << root << ") of " << type_name<M>();
  } catch (...) {
    failure = std::current_exception();
  }
  std::uint64_t hash = backend::RankedStep::hash_of(name);
  backend::RankedStep::mix(hash, number);
  backend::RankedStep step{.hash = hash,
                           .name = name,
                           .model = number,
                           .number = backend::RankedStep::no_number,
                           .rows = ranks.rank() == root ? std::size_t{1} : 0,  // so only the root's values count
                           .failure = failure,
                           .visit = &show_values<decltype(visit)>,
                           .of = &visit,
                           .deadline = {.patience = patience}};
  if (step.deadline.exists()) step.deadline.at = Clock::after(patience);
  ranks.combine(step);
}

}}}  // namespace fanout::v0::detail
