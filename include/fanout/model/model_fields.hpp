// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <fanout/array/view.hpp>
#include <fanout/fwd.hpp>
#include <fanout/gather/ungatherable.hpp>
#include <fanout/model/per_replica.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/plain_struct.hpp>

namespace fanout { inline namespace v0 {

// Finds fields of a model, at any depth of its structs, tuples, arrays, vectors, optionals, maps and variants. Members
// that a class does not show are not found: a class that is no plain struct lists its fields.

namespace detail {

template <class X>
inline constexpr bool is_view = false;
template <class T, std::size_t R>
inline constexpr bool is_view<View<T, R>> = true;

/// A view of elements that it does not own.
template <class X>
concept ShowsOthers = is_view<X> || SpanNode<X> || requires(const X& x) {
  x.subspan(std::size_t{0});
};

template <class X>
inline constexpr bool is_per_replica = false;
template <class T>
inline constexpr bool is_per_replica<PerReplica<T>> = true;

template <class X>
inline constexpr bool is_shared = false;
template <class T>
inline constexpr bool is_shared<Shared<T>> = true;

/// Not among the values of a model, which are saved and sent to other processes: what each replica has for itself, what
/// all replicas share, and what has no value.
template <class X>
inline constexpr bool is_no_model_value = is_per_replica<X> || is_shared<X> || (std::is_empty_v<X> && !wraps_tree<X>);

/// A class with a known definition. A member's constructor may also take a class that is only declared.
template <class X>
concept IsCompleteClass = std::is_class_v<X> && requires {
  sizeof(X);
};

/// A field that is declared as Type, at this place of a model.
template <class Type, class Place>
struct FieldAt {};

/// The structs around a field. A struct inside itself, by way of a vector or a map, is not searched again.
template <class... Structs>
struct Within {};

/// Finds the first wanted field. `Wanted::is<Declared>` is true if a field that is declared so is wanted.
/// `Wanted::in_const` is true if const fields count, and `Wanted::in_own` if those inside a PerReplica count. Returns
/// the identity of a FieldAt, or of void.
template <class Wanted, class Declared, class... Around, class... Steps>
consteval auto find_field(Within<Around...>, LeafAt<Steps...>);

template <class Wanted, class Declared, class... Around>
consteval bool holds_field() {
  return !std::is_void_v<typename decltype(find_field<Wanted, Declared>(Within<Around...>(), LeafAt<>()))::type>;
}

/// Initialises a member that is wanted, or that holds a wanted one. It cannot be copied, so that a type that is made
/// from a copy of anything, such as std::any, does not count.
template <class Wanted, class... Around>
struct AnyWanted {
  AnyWanted() = default;
  AnyWanted(const AnyWanted&) = delete;
  template <class T>
    requires(holds_field<Wanted, T, Around...>())
  operator T() const {  // NOLINT(google-explicit-constructor): stands in for what is converted
    __builtin_unreachable();
  }
};

/// True if an aggregate may hold such a field. Does not take the aggregate apart, which is an error for some. Only a
/// reference that writes needs an lvalue.
template <class Wanted, class X, class... Around>
consteval bool may_hold_field() {
  using Filler = typename Initialisers<X>::filler;
  return (Wanted::template is<int&> && Initialisers<X>::count != unknown_count && std::is_same_v<Filler, AnyLvalue>) ||
         some_member_takes<X, AnyWanted<Wanted, Around...>>();
}

template <class Wanted, class Type, class Around, class Place>
using found_field_t = typename decltype(find_field<Wanted, Type>(Around(), Place()))::type;

template <class Wanted, class Around, class... Child, class... Step, class... Steps>
consteval auto find_among_children(ChildTypes<ChildType<Child, Step>...>, LeafAt<Steps...>) {
  return first_finding<found_field_t<Wanted, Child, Around, LeafAt<Steps..., Step>>...>();
}

template <class Wanted, class Declared, class... Around, class... Steps>
consteval auto find_field(Within<Around...> around, LeafAt<Steps...> place) {
  using X = std::remove_cv_t<Declared>;
  using Nothing = std::type_identity<void>;
  if constexpr (std::is_const_v<Declared> && !Wanted::in_const) {
    return Nothing();
  } else if constexpr (std::is_class_v<X> && !IsCompleteClass<X>) {
    return Nothing();
  } else if constexpr (Wanted::template is<Declared>) {
    return std::type_identity<FieldAt<Declared, LeafAt<Steps...>>>();
  } else if constexpr (!IsCompleteClass<X>) {
    return Nothing();
  } else if constexpr (ShowsOthers<X>) {
    return Nothing();
  } else if constexpr (is_per_replica<X>) {
    if constexpr (Wanted::in_own) {
      return find_field<Wanted, typename X::value_type>(around, place);
    } else {
      return Nothing();
    }
  } else if constexpr (wraps_tree<X>) {
    return Nothing();
  } else if constexpr (!StructLike<X>) {
    return find_among_children<Wanted, Within<Around...>>(child_types_t<X>(), place);
  } else if constexpr ((std::is_same_v<X, Around> || ...)) {
    return Nothing();
  } else if constexpr (ListsFields<X>) {
    return find_among_children<Wanted, Within<X, Around...>>(child_types_t<X>(), place);
  } else if constexpr (ElementSequence<X> && !std::is_aggregate_v<X>) {
    return find_among_children<Wanted, Within<X, Around...>>(child_types_t<X>(), place);
  } else if constexpr (!std::is_aggregate_v<X>) {
    return Nothing();
  } else if constexpr (!may_hold_field<Wanted, X, X, Around...>()) {
    return Nothing();
  } else if constexpr (child_kind<X> != ChildKind::none) {
    return find_among_children<Wanted, Within<X, Around...>>(child_types_t<X>(), place);
  } else {  // it holds one, but does not show where
    return std::type_identity<FieldAt<X, LeafAt<Steps...>>>();
  }
}

/// The first wanted field of a model of type M, as a FieldAt. void if there is none.
template <class Wanted, class M>
using find_field_t = typename decltype(find_field<Wanted, M>(Within<>(), LeafAt<>()))::type;

/// Fields that each replica has for itself.
struct OwnFields {
  static constexpr bool in_const = true;
  static constexpr bool in_own = false;
  template <class Declared>
  static constexpr bool is = is_per_replica<std::remove_cv_t<Declared>>;
};
template <class M>
inline constexpr bool has_own_fields = holds_field<OwnFields, M>();

}  // namespace detail
}}  // namespace fanout::v0
