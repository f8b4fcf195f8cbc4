// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/gather/gather_struct.hpp>
#include <fanout/gather/gathering.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/under_rule.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// What cannot be gathered: the first such type and where it stands, for the compiler to
// print.

namespace detail {

template <std::size_t I>
struct Element {};
struct EachValue {};
template <std::size_t I>
struct Alternative {};
template <class... Steps>
struct LeafAt {};
template <class Type, class Place>
struct Ungatherable {};
/// The rule that somebody chose for this place takes no values of this type, which are gathered without it.
template <class Rule, class Type, class Place>
struct NotTaken {};
/// A member of a struct at this place is not of the type that it is gathered to.
template <class Member, class GatheredTo, class Place>
struct CannotHold {};

/// Of several findings, the first that is not void.
template <class... Findings>
struct first_finding {
  using type = void;
};
template <class First, class... Rest>
struct first_finding<First, Rest...> {
  using type = First;
};
template <class... Rest>
struct first_finding<void, Rest...> : first_finding<Rest...> {};

template <class Rule, class X, class Place>
struct find_ungatherable;

template <class Rule, class X, class Place>
using find_ungatherable_t = typename find_ungatherable<Rule, std::remove_cvref_t<X>, Place>::type;

template <class Rule, class X, class Place>
struct find_ungatherable {
  using type = std::conditional_t<Gatherable<Concatenate, X>, NotTaken<Rule, X, Place>, Ungatherable<X, Place>>;
};
template <class Rule, class X, class Place>
  requires Gatherable<Rule, X>
struct find_ungatherable<Rule, X, Place> {
  using type = void;
};
template <class Outer, class Rule, class X, class Place>
  requires(!GatherableChosen<Rule, X>)
struct find_ungatherable<Outer, UnderRule<Rule, X>, Place> : find_ungatherable<Rule, std::remove_cvref_t<X>, Place> {};
template <class Rule, class... K, class... T, class... Steps>
  requires(!(Gatherable<Rule, T> && ...))
struct find_ungatherable<Rule, Dict<Entry<K, T>...>, LeafAt<Steps...>>
    : first_finding<find_ungatherable_t<Rule, T, LeafAt<Steps..., K>>...> {};
template <class Rule, class X, class Place, class Indices>
struct find_in_tuple;
template <class Rule, class X, class... Steps, std::size_t... I>
struct find_in_tuple<Rule, X, LeafAt<Steps...>, std::index_sequence<I...>>
    : first_finding<find_ungatherable_t<Rule, std::tuple_element_t<I, X>, LeafAt<Steps..., Element<I>>>...> {};
template <class Rule, TupleNode X, class... Steps>
  requires(!Gatherable<Rule, X>)
struct find_ungatherable<Rule, X, LeafAt<Steps...>>
    : find_in_tuple<Rule, X, LeafAt<Steps...>, std::make_index_sequence<std::tuple_size_v<X>>> {};
template <class Rule, MapNode X, class... Steps>
  requires(!Gatherable<Rule, X> && !Gatherable<Rule, typename X::mapped_type>)
struct find_ungatherable<Rule, X, LeafAt<Steps...>>
    : find_ungatherable<Rule, typename X::mapped_type, LeafAt<Steps..., EachValue>> {};
template <class Rule, class X, class... Steps>
  requires((VectorNode<X> || SpanNode<X> || OptionalNode<X> || owns_elements<X> || shows_elements<X>)&&!MapNode<X> &&
           !Gatherable<Rule, X> && !Gatherable<Rule, typename X::value_type>)
struct find_ungatherable<Rule, X, LeafAt<Steps...>>
    : find_ungatherable<Rule, typename X::value_type, LeafAt<Steps..., EachValue>> {};

template <class Rule, class X, class Place, class Indices>
struct find_in_variant;
template <class Rule, class X, class... Steps, std::size_t... I>
struct find_in_variant<Rule, X, LeafAt<Steps...>, std::index_sequence<I...>>
    : first_finding<find_ungatherable_t<Rule, typename AlternativesOf<X>::template type<I>,
                                        LeafAt<Steps..., Alternative<I>>>...> {};
template <class Rule, VariantNode X, class... Steps>
  requires(!Gatherable<Rule, X>)
struct find_ungatherable<Rule, X, LeafAt<Steps...>>
    : find_in_variant<Rule, X, LeafAt<Steps...>, std::make_index_sequence<AlternativesOf<X>::size>> {};

template <class Outer, class Rule, class T, class Place>
  requires(!Gatherable<Rule, T>)
struct find_ungatherable<Outer, ReducedMember<Rule, T>, Place> : find_ungatherable<Rule, T, Place> {};

template <class Key, std::size_t I>
struct field_step {
  using type = Key;
};
template <std::size_t I>
struct field_step<void, I> {
  using type = Element<I>;
};

/// What is wrong with a member of type Field: it cannot be gathered, or it can, but not to a Field.
template <class Rule, class Field, class Place>
struct find_in_field : find_ungatherable<Rule, std::remove_cvref_t<Field>, Place> {};
template <class Rule, class Field, class Place>
  requires(Gatherable<Rule, Field> && !HoldsGathered<Rule, Field>)
struct find_in_field<Rule, Field, Place> {
  using type = CannotHold<Field, gathered_under_t<Rule, Field>, Place>;
};
template <class Rule, class X, class Place, class Indices>
struct find_in_struct;
template <class Rule, class X, class... Steps, std::size_t... I>
struct find_in_struct<Rule, X, LeafAt<Steps...>, std::index_sequence<I...>>
    : first_finding<typename find_in_field<
          Rule, typename FieldsOf<X>::template type<I>,
          LeafAt<Steps..., typename field_step<typename FieldsOf<X>::template key<I>, I>::type>>::type...> {};
template <class Rule, StructNode X, class... Steps>
  requires(Makeable<X> && !Gatherable<Rule, X>)
struct find_ungatherable<Rule, X, LeafAt<Steps...>>
    : find_in_struct<Rule, X, LeafAt<Steps...>, std::make_index_sequence<FieldsOf<X>::size>> {};

template <class Finding>
inline constexpr bool can_be_gathered = true;
template <class Type, class Place>
inline constexpr bool can_be_gathered<Ungatherable<Type, Place>> = false;

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
