// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

/// A model whose shards take something along from the thread that calls it, such as the modes that a library keeps for
/// each thread:
///
/// 1. `static auto caller_state()` is called on that thread, once a call, and what it returns lives until all shards
///    have ended;
/// 2. `enter() const` of that is called on each shard's thread, before its arguments are split for it, and what that
///    returns lives until `forward` has ended. It puts back what it found, since the caller's thread runs shards too.
template <class M>
concept TakesCallerState = requires {
  M::caller_state().enter();
};

namespace detail {

struct NothingEntered {};

/// Of several models, what has been entered of them, whether or not it can be moved.
template <class First, class Others>
struct EnteredStates {
  First first;
  Others others;
};

/// What shards of these models take along, found where this is made.
template <class... M>
class CallerStates {
 public:
  NothingEntered enter() const { return {}; }
};

template <class M, class... Others>
class CallerStates<M, Others...> : public CallerStates<Others...> {};

template <TakesCallerState M, class... Others>
class CallerStates<M, Others...> : CallerStates<Others...> {
  decltype(M::caller_state()) state_ = M::caller_state();

 public:
  auto enter() const {
    const CallerStates<Others...>& others = *this;
    return EnteredStates<decltype(state_.enter()), decltype(others.enter())>{state_.enter(), others.enter()};
  }
};

/// Of a tuple, an array or a vector of models.
template <class Models>
struct caller_states_of {
  using type = CallerStates<std::remove_cvref_t<decltype(std::declval<const Models&>()[0])>>;
};
template <TupleNode Models>
struct caller_states_of<Models> {
  template <std::size_t... I>
  static CallerStates<std::remove_cvref_t<std::tuple_element_t<I, Models>>...> find(std::index_sequence<I...>);
  using type = decltype(find(std::make_index_sequence<std::tuple_size_v<Models>>{}));
};

}  // namespace detail
}}  // namespace fanout::v0
