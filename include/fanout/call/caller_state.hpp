// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

/// A model whose shards take state along from the calling thread, such as the modes that a library keeps per thread:
///
/// 1. `static auto caller_state()` is called on the calling thread, once per call. Its result lives until all shards
///    have ended.
/// 2. `enter() const` of that result is called on each shard's thread, before the arguments of the shard are split. Its
///    result lives until `forward` has ended. Its destructor must restore what enter() found, since the calling thread
///    runs shards too.
template <class M>
concept TakesCallerState = requires {
  M::caller_state().enter();
};

namespace detail {

struct NothingEntered {};

/// What enter() returned for several models. Works for types that cannot be moved.
template <class First, class Others>
struct EnteredStates {
  First first;
  Others others;
};

/// The caller states of these models, captured on the thread that constructs this.
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

/// The CallerStates of a tuple, an array or a vector of models.
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
