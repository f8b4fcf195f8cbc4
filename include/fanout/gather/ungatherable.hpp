// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/gather_tree.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// Finds the first type in a result that cannot be gathered, and its place, for the compiler to print.

namespace detail {

/// A value of this type at this place cannot be gathered.
template <class Type, class Place>
struct Ungatherable {};
/// The gather_traits of this type has no `type` or no `gather` that fits.
template <class Rule, class Type, class Place>
struct IncompleteTraits {};
/// The rule at this place does not take this type. Without the rule the type could be gathered.
template <class Rule, class Type, class Place>
struct NotTaken {};
/// The struct member at this place has another type than its gathered value.
template <class Member, class GatheredTo, class Place>
struct CannotHold {};

template <class Rule, class X, class Place>
struct find_ungatherable;

template <class Rule, class X, class Place>
using find_ungatherable_t = typename find_ungatherable<Rule, std::remove_cvref_t<X>, Place>::type;

template <class Rule, class X, class Place>
struct find_ungatherable {
  using type = std::conditional_t<Gatherable<rules::Concatenate, X>, NotTaken<Rule, X, Place>, Ungatherable<X, Place>>;
};
template <class Rule, class X, class Place>
  requires Gatherable<Rule, X>
struct find_ungatherable<Rule, X, Place> {
  using type = void;
};
template <class Rule, class X, class Place>
  requires GathersIncompletely<Rule, X>
struct find_ungatherable<Rule, X, Place> {
  using type = IncompleteTraits<Rule, X, Place>;
};
template <class Outer, class Rule, class X, class Place>
  requires(!GatherableChosen<Rule, X>)
struct find_ungatherable<Outer, WithRule<Rule, X>, Place> : find_ungatherable<Rule, std::remove_cvref_t<X>, Place> {};
template <class Rule, class Children, class Place>
struct find_in_children;
template <class Rule, class... Child, class... Step, class... Steps>
struct find_in_children<Rule, ChildTypes<ChildType<Child, Step>...>, LeafAt<Steps...>>
    : first_finding<find_ungatherable_t<Rule, Child, LeafAt<Steps..., Step>>...> {};
template <class Rule, class X, class Place>
  requires(Rebuildable<X> && !StructNode<X> && !Gatherable<Rule, X> && !GathersIncompletely<Rule, X> &&
           !all_children<AsGathered<Rule>, X>)
struct find_ungatherable<Rule, X, Place> : find_in_children<Rule, child_types_t<X>, Place> {};

template <class Outer, class Rule, class T, class Place>
  requires(!Gatherable<Rule, T>)
struct find_ungatherable<Outer, ReducedMember<Rule, T>, Place> : find_ungatherable<Rule, T, Place> {};

/// Finds the fault of a member of type Field: it cannot be gathered, or its gathered value is not a Field.
template <class Rule, class Field, class Place>
struct find_in_field : find_ungatherable<Rule, std::remove_cvref_t<Field>, Place> {};
template <class Rule, class Field, class Place>
  requires(Gatherable<Rule, Field> && !HoldsGathered<Rule, Field>)
struct find_in_field<Rule, Field, Place> {
  using type = CannotHold<Field, gathered_under_t<Rule, Field>, Place>;
};
template <class Rule, class Fields, class Place>
struct find_in_fields;
template <class Rule, class... Field, class... Step, class... Steps>
struct find_in_fields<Rule, ChildTypes<ChildType<Field, Step>...>, LeafAt<Steps...>>
    : first_finding<typename find_in_field<Rule, Field, LeafAt<Steps..., Step>>::type...> {};
template <class Rule, StructNode X, class Place>
  requires(Makeable<X> && !InsideItself<X, takes_rows<Rule>> && !Gatherable<Rule, X> && !GathersIncompletely<Rule, X>)
struct find_ungatherable<Rule, X, Place> : find_in_fields<Rule, child_types_t<X>, Place> {};

template <class Finding>
inline constexpr bool can_be_gathered = true;
template <class Type, class Place>
inline constexpr bool can_be_gathered<Ungatherable<Type, Place>> = false;

template <class Finding>
inline constexpr bool has_complete_traits = true;
template <class Rule, class Type, class Place>
inline constexpr bool has_complete_traits<IncompleteTraits<Rule, Type, Place>> = false;

template <class Finding>
inline constexpr bool is_taken = true;
template <class Rule, class Type, class Place>
inline constexpr bool is_taken<NotTaken<Rule, Type, Place>> = false;

template <class Finding>
inline constexpr bool can_be_held = true;
template <class Member, class GatheredTo, class Place>
inline constexpr bool can_be_held<CannotHold<Member, GatheredTo, Place>> = false;

}  // namespace detail
}}  // namespace fanout::v0
