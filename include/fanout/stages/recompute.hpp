// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <tuple>
#include <utility>

#include <fanout/context/context.hpp>
#include <fanout/model/forward.hpp>
#include <fanout/model/saved.hpp>
#include <fanout/stages/procedures.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A model of a stage that saves only what it takes. Made by recompute().
template <class M>
struct Recompute {
  M model;

  /// Keeps a tuple of what it takes.
  template <Context Ctx, class... X>
  auto forward(Ctx& ctx, const X&... x) const {
    return saved(call_forward(model, ctx, x...), std::make_tuple(x...));
  }
  template <Context Ctx, class State, class Dy>
  auto backward(Ctx& ctx, const State& state, const Dy& dy) const {
    const auto again = std::apply([&](const auto&... x) { return call_forward_and_save(model, ctx, x...); }, state);
    return call_backward(model, ctx, again.state, dy);
  }
  template <Context Ctx, class Kept>
    requires HasBackwardWeights<const M, Ctx&, Kept> || HasBackwardWeights<const M, Kept>
  auto backward_weights(Ctx& ctx, const Kept& kept) const { return BackwardWeights()(model, ctx, kept); }
};

}  // namespace detail

/// A model for a stage that is trained: `stage(recompute(Block{...}), devices)`. Instead of the state that the model
/// saves, it keeps only what the model takes, and runs its `forward` again before `backward`. So it takes less memory
/// and more time. Random numbers of ctx.random() are the same both times. The model must have a const `forward`, and is
/// the member `model` of the result.
template <class M>
detail::Recompute<M> recompute(M model) {
  return {std::move(model)};
}

}}  // namespace fanout::v0
