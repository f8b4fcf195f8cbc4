// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <fanout/base/text.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/collective/element_type.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/collective/visit_elements.hpp>
#include <fanout/gather/combine.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/reduction.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/scatter/each.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/number.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// The values in a gathered tree that reduction rules have combined over the shards of this process, so that they can be
// combined over the processes as well.

template <class Rule>
concept ReducesNumbers = requires {
  Rule::name;
  Rule::counts_empty;
};

struct WhatIsReduced;
template <class X>
inline constexpr bool holds_reduced = false;
template <class Rule, class X>
inline constexpr bool holds_reduced<WithRule<Rule, X>> = ReducesNumbers<Rule> || has_inside<WhatIsReduced, X>();
template <class Rule, class T>
inline constexpr bool holds_reduced<ReducedMember<Rule, T>> = ReducesNumbers<Rule>;
template <class X>
inline constexpr bool holds_reduced<Each<X>> = has_inside<WhatIsReduced, std::remove_cvref_t<X>>();

struct WhatIsReduced {
  template <class X>
  static constexpr bool found = holds_reduced<X>;
};

/// A result of `forward` with a part that a reduction rule combines, as far as its type says.
template <class X>
inline constexpr bool has_reductions = has_inside<WhatIsReduced, X>();
template <>
inline constexpr bool has_reductions<void> = false;

struct KeepFirst {
  template <Scalar T>
  constexpr T operator()(const T& a, const T&) const {
    return a;
  }
};

/// The rule of a First<T> that is a field of the model: the value of the first process that has rows.
struct FirstOverRanks : rules::Fold<KeepFirst> {
  static constexpr const char* name = "first";
};

/// The rule that combines what `Rule` has combined in each process. A process has weighted its rows already, so means
/// are added.
template <class Rule>
struct RuleOverRanks {
  using type = Rule;
};
template <>
struct RuleOverRanks<rules::Mean> {
  using type = rules::Sum;
};

/// Processes that all count, in place of the shards of a GatherTarget.
struct CountingRanks {
  std::size_t ranks;
  std::size_t size() const noexcept { return ranks; }
  static std::size_t first() noexcept { return 0; }
  static bool counts(std::size_t) noexcept { return true; }
  static double share(std::size_t) noexcept { return 1; }
};

/// fanout's own rules throw for no number. A user's function, or the operators of a class of numbers, may.
template <class Rule, class T>
inline constexpr bool fold_may_throw = !std::is_arithmetic_v<T>;
template <class F, class T>
inline constexpr bool fold_may_throw<rules::Fold<F>, T> = !std::is_nothrow_invocable_v<const F&, const T&, const T&>;

/// The reduction of numbers that a rule over processes makes of values of type T.
template <class Rule, class T>
inline constexpr backend::NumberFold number_fold = {};
template <class T>
inline constexpr backend::NumberFold number_fold<rules::Max, T> = {
    .kind = element_kind<T>, .size = sizeof(T), .by = backend::Reduction::max};
template <class T>
inline constexpr backend::NumberFold number_fold<rules::Min, T> = {
    .kind = element_kind<T>, .size = sizeof(T), .by = backend::Reduction::min};
/// A complex number is added part by part.
template <class T>
inline constexpr backend::NumberFold number_fold<rules::Sum, T> = {
    .kind = sizeof(T) % sizeof(typename real_of<T>::type) == 0 ? element_kind<typename real_of<T>::type>
                                                               : backend::ElementType::Kind::other,
    .size = sizeof(typename real_of<T>::type),
    .by = backend::Reduction::sum};

/// Elements of this type can be sent as bytes, and are aligned where they arrive.
template <class T>
inline constexpr bool travels_as_bytes = std::is_trivially_copyable_v<T> &&
                                         alignof(T) <= backend::RankFold::largest_alignment;

/// How values of type T under a rule are combined over processes.
template <class Rule, class T>
struct FoldOverRanks {
  using RankRule = typename RuleOverRanks<Rule>::type;
  // Nested requirements, since a user's function need not compile for a type that does not travel, such as PerShard.
  static constexpr bool travels = requires { requires travels_as_bytes<T> && Combines<RankRule, T>; };
  static constexpr bool may_throw = requires { requires travels && fold_may_throw<Rule, T>; };
  static constexpr backend::NumberFold numbers = number_fold<RankRule, T>;

  static std::string name() { return Text() << Rule::name << " of " << type_name<T>(); }

  static void combine(void* to, const backend::RankElements& from, std::size_t count) {
    if constexpr (travels) {
      combine_into<RankRule, T>(static_cast<T*>(to), count, CountingRanks{from.ranks},
                                [&from](std::size_t i) { return static_cast<const T*>(from[i]); });
    }
  }
};

/// The same for a value that a function combines as a whole.
template <class F, class T>
struct FoldWholeOverRanks : FoldOverRanks<rules::Fold<F>, T> {
  static constexpr bool travels = travels_as_bytes<T>;
  static constexpr bool may_throw = fold_may_throw<rules::Fold<F>, T>;

  static void combine(void* to, const backend::RankElements& from, std::size_t) {
    if constexpr (travels) {
      T result = *static_cast<const T*>(from[0]);
      for (std::size_t i = 1; i < from.ranks; ++i) result = F()(result, *static_cast<const T*>(from[i]));
      *static_cast<T*>(to) = result;
    }
  }
};

template <class Fold, bool counts_empty, class T>
inline constexpr backend::RankFold rank_fold = {.name = &Fold::name,
                                                .element_size = Fold::travels ? sizeof(T) : 0,
                                                .counts_empty = counts_empty,
                                                .may_throw = Fold::may_throw,
                                                .combine = &Fold::combine,
                                                .numbers = Fold::numbers};

/// Values that only gather_traits of their own can combine. Over processes that is refused.
template <class Rule, class X>
struct UnknownOverRanks {
  static constexpr bool travels = false;
  static constexpr bool may_throw = false;
  static constexpr backend::NumberFold numbers = {};
  static std::string name() {
    return Text() << Rule::name << " of " << type_name<X>() << ", whose gather_traits have no visit_numbers";
  }
  static void combine(void*, const backend::RankElements&, std::size_t) {}
};

struct IgnoresNumbers {
  template <class T>
  void operator()(std::span<T>, const LeafPath&) const {}
};

/// A type whose own gather_traits show the numbers that the rule has combined in a result.
template <class Rule, class X, class G>
concept ShowsNumbers = requires(G& result, const LeafPath& path, const IgnoresNumbers& f) {
  gather_traits<Rule, X>::visit_numbers(result, path, f);
};

/// True if fanout's own code gathers X under the rule. What a user's gather_traits do inside of X is not known.
template <class Rule, class X>
inline constexpr bool is_gathered_by_default = std::is_base_of_v<gather_defaults<Rule, X>, gather_traits<Rule, X>>;

template <class Rule, class X, class G, class F>
void visit_reduced(const X& piece, G& result, const LeafPath& path, const F& f);

template <class Rule, class X, class G, class F>
void visit_reduced_children(const X& piece, G& result, const LeafPath& path, const F& f) {
  if constexpr (child_kind<X> == ChildKind::none && ReducesNumbers<Rule>) {  // as a string under first
    using Fold = FoldOverRanks<Rule, X>;
    f(rank_fold<Fold, false, X>, Elements<G>{.data = &result, .count = 1}, path);
  } else {
    visit_children<WithPlaces>(piece, path, [&](const auto& child, const LeafPath& at, const auto& place) {
      visit_reduced<Rule>(child, place(result), at, f);
    });
  }
}

/// Visits a tree that chose the rule.
template <class Rule, class X, class G, class F>
void visit_reduced_chosen(const X& piece, G& result, const LeafPath& path, const F& f) {
  if constexpr (requires { typename gather_chosen<Rule, X>::combines_whole; }) {
    using Fold = FoldWholeOverRanks<typename gather_chosen<Rule, X>::combines_whole, X>;
    f(rank_fold<Fold, false, X>, Elements<X>{.data = &result, .count = 1}, path);
  } else {
    visit_reduced<Rule>(piece, result, path, f);
  }
}

/// Calls `f(fold, elements, path)` for each value in `result` that a reduction rule has combined. `piece` is the value
/// of one shard, which shows the rules. Its arrays may have been moved from.
template <class Rule, class X, class G, class F>
void visit_reduced(const X& piece, G& result, const LeafPath& path, const F& f) {
  if constexpr (requires { []<class R2, class Y>(const WithRule<R2, Y>&) {}(piece); }) {
    [&]<class R2, class Y>(const WithRule<R2, Y>& chosen) {
      if constexpr (holds_reduced<WithRule<R2, Y>>) visit_reduced_chosen<R2>(chosen.value, result, path, f);
    }(piece);
  } else if constexpr (requires { []<class R2, class Y>(const ReducedMember<R2, Y>&) {}(piece); }) {
    [&]<class R2, class Y>(const ReducedMember<R2, Y>& chosen) {
      if constexpr (ReducesNumbers<R2>) visit_reduced_chosen<R2>(chosen.value, result.value, path, f);
    }(piece);
  } else if constexpr (ReducesNumbers<Rule> && ShowsNumbers<Rule, X, G>) {
    gather_traits<Rule, X>::visit_numbers(result, path, [&f]<class T>(std::span<T> numbers, const LeafPath& at) {
      Elements<T> elements{.data = numbers.data(), .count = numbers.size()};
      elements.extents.push_back(numbers.size());
      f(rank_fold<FoldOverRanks<Rule, T>, Rule::counts_empty, T>, elements, at);
    });
  } else if constexpr (ReducesNumbers<Rule> && !is_gathered_by_default<Rule, X>) {
    f(rank_fold<UnknownOverRanks<Rule, X>, false, X>, Elements<G>{.data = &result, .count = 1}, path);
  } else if constexpr (!is_gathered_by_default<Rule, X> || !(ReducesNumbers<Rule> || has_reductions<X>)) {
  } else if constexpr (requires { []<class Y>(const Each<Y>&) {}(piece); }) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      visit_reduced<Rule>(piece.value[i], result[i], LeafPath(path, i), f);
    }
  } else if constexpr (ReducesNumbers<Rule> && OneArray<G>) {
    using T = element_of_t<G>;
    if constexpr (Combines<Rule, T>) {
      visit_elements_of(result, path, [&f](const Elements<T>& elements, const LeafPath& at) {
        f(rank_fold<FoldOverRanks<Rule, T>, Rule::counts_empty, T>, elements, at);
      });
    } else {
      visit_reduced_children<Rule>(piece, result, path, f);
    }
  } else {
    visit_reduced_children<Rule>(piece, result, path, f);
  }
}

/// Shows values to those who combine them over processes. `visit(f)` calls `f(fold, elements, path)` for each.
template <class Visit>
void show_values(const void* visit, backend::RankedValues& values) {
  (*static_cast<const Visit*>(visit))(
      [&values](const backend::RankFold& fold, const auto& elements, const LeafPath& path) {
        values.add({.fold = &fold,
                    .data = elements.data,
                    .count = elements.count,
                    .space = elements.space,
                    .extents = elements.extents.begin(),
                    .axes = elements.extents.size()},
                   path);
      });
}

}}}  // namespace fanout::v0::detail
