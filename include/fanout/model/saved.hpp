// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/model/forward.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A result of `forward`, and what `backward` needs of it. Made by saved().
template <class Y, class State>
struct Saved {
  Y value;
  State state;

  Y value_alone() && { return std::move(value); }
};

template <class Y, class State>
inline constexpr bool is_saved<Saved<Y, State>> = true;

}  // namespace detail

/// `return saved(y, state)` from the `forward` of a stage: returns y, and keeps `state` for `backward(state, dy)`. The
/// state stays in the memory of the shard's device until then. Outputs and tensors in it keep their memory. Borrowed
/// memory, for example of a View of the arguments, is copied. Outside of Pipeline::train(), the state is dropped.
template <class Y, class State>
detail::Saved<std::remove_cvref_t<Y>, std::remove_cvref_t<State>> saved(Y&& value, State&& state) {
  return {std::forward<Y>(value), std::forward<State>(state)};
}

}}  // namespace fanout::v0
