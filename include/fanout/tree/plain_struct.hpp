// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

// Finds out what a struct is made of, by asking which initialisers it takes. Nothing is initialised, and asking is
// never an error, so any type may be asked about. The stand-ins for values have bodies all the same, since compilers
// may look into constructors that use them.

/// The most members that a struct may have without listing its fields: tie_members() names no more.
inline constexpr std::size_t most_members = 32;

/// Initialises a member of any type, except an array or a reference that writes.
struct AnyValue {
  template <class T>
  operator T() const {  // NOLINT(google-explicit-constructor): stands in for what is converted
    __builtin_unreachable();
  }
};

/// Initialises references that write, and members that can be copied.
struct AnyLvalue {
  template <class T>
  operator T&() const {  // NOLINT(google-explicit-constructor): stands in for what is converted
    __builtin_unreachable();
  }
};

/// Initialises a base class of X: a struct without base classes takes it nowhere.
template <class X>
struct AnyBase {
  template <class T>
    requires(std::is_base_of_v<T, X> && !std::same_as<T, X>)
  operator T() const {  // NOLINT(google-explicit-constructor): stands in for what is converted
    __builtin_unreachable();
  }
};

template <class Type, std::size_t>
using repeated = Type;

template <class X, class Filler, std::size_t... I>
constexpr bool takes_fillers(std::index_sequence<I...>) {
  return requires { X{repeated<Filler, I>()...}; };
}

/// True if the member behind `Before` others takes a Probe.
template <class X, class Filler, class Probe, std::size_t... Before, std::size_t... After>
constexpr bool takes_probe(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { X{repeated<Filler, Before>()..., Probe(), repeated<Filler, After>()...}; };
}

template <class X, class Filler, std::size_t... Before, std::size_t... After>
constexpr bool takes_braces(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { X{repeated<Filler, Before>()..., {}, repeated<Filler, After>()...}; };
}

inline constexpr std::size_t unknown_count = static_cast<std::size_t>(-1);

/// The largest number of fillers that X takes. `most_members + 1` stands for more. A smaller number may be too few, if
/// members must be initialised. So the search goes on until a number fails after one that worked.
template <class X, class Filler, std::size_t N = 0, bool Found = false>
constexpr std::size_t count_fillers() {
  constexpr bool takes = takes_fillers<X, Filler>(std::make_index_sequence<N>());
  if constexpr (Found && !takes) {
    return N - 1;
  } else if constexpr (N > most_members) {
    return takes ? N : unknown_count;
  } else {
    return count_fillers<X, Filler, N + 1, takes>();
  }
}

template <class X, class Filler, std::size_t Count = count_fillers<X, Filler>()>
struct InitialisedBy {
  using filler = Filler;
  static constexpr std::size_t count = Count;
};

/// The number and the kind of initialisers that X takes.
template <class X>
struct Initialisers : InitialisedBy<X, AnyValue> {};
template <class X>
  requires(count_fillers<X, AnyValue>() == unknown_count)
struct Initialisers<X> : InitialisedBy<X, AnyLvalue> {};

/// True if a member of X takes a Probe. `I` is the first member that is asked.
template <class X, class Probe, std::size_t I = 0>
constexpr bool some_member_takes() {
  using Is = Initialisers<X>;
  if constexpr (Is::count == unknown_count || I >= Is::count) {
    return false;
  } else if constexpr (takes_probe<X, typename Is::filler, Probe>(std::make_index_sequence<I>(),
                                                                  std::make_index_sequence<Is::count - 1 - I>())) {
    return true;
  } else {
    return some_member_takes<X, Probe, I + 1>();
  }
}

/// True if a C array stands behind `Before` members. Nothing converts to an array, so its elements were counted one by
/// one. Braces initialise all of them, so X takes fewer initialisers with braces there.
template <class X, std::size_t Before, std::size_t After>
constexpr bool is_c_array() {
  using Filler = typename Initialisers<X>::filler;
  constexpr bool takes = takes_braces<X, Filler>(std::make_index_sequence<Before>(), std::make_index_sequence<After>());
  constexpr bool at_full_count = Before + 1 + After == Initialisers<X>::count;
  if constexpr (takes || After == 0) {
    return takes && !at_full_count;
  } else {
    return is_c_array<X, Before, After - 1>();
  }
}

template <class X, std::size_t... I>
constexpr bool has_c_array(std::index_sequence<I...>) {
  return (is_c_array<X, I, sizeof...(I) - 1 - I>() || ...);
}

/// True if X has a base class. It is initialised before all members.
template <class X>
constexpr bool has_base() {
  if constexpr (Initialisers<X>::count == 0) {
    return false;
  } else {
    return takes_probe<X, typename Initialisers<X>::filler, AnyBase<X>>(
        std::index_sequence<>(), std::make_index_sequence<Initialisers<X>::count - 1>());
  }
}

template <class X>
constexpr bool is_plain_struct() {
  if constexpr (!std::is_class_v<X> || !std::is_aggregate_v<X>) {
    return false;
  } else if constexpr (Initialisers<X>::count > most_members || has_base<X>()) {
    return false;
  } else {
    return !has_c_array<X>(std::make_index_sequence<Initialisers<X>::count>());
  }
}

/// A struct whose members can be found without a list: an aggregate of up to 32 members, none of them a C array, and
/// without base classes. Members may be const, references, or only movable. A struct with an anonymous union or a
/// bit-field passes, but the compiler refuses to take it apart.
template <class X>
concept PlainStruct = is_plain_struct<X>();

/// The number of members of a plain struct.
template <PlainStruct X>
inline constexpr std::size_t member_count = Initialisers<X>::count;

}}}  // namespace fanout::v0::detail
