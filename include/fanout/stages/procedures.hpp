// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/gather/sharded.hpp>
#include <fanout/model/forward.hpp>
#include <fanout/stages/saved.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// What the shards of a stage do in training, in place of `forward` alone.

template <class M, class... A>
concept HasBackward = requires(M& model, A&&... args) {
  model.backward(static_cast<A&&>(args)...);
};

/// Stand for the result of a model that cannot be trained.
struct SavesNothing {};
struct GoesNotBack {};

/// Calls `backward(ctx, state, dy)`, or without the context if it wants none.
template <class M, class Ctx, class State, class Dy>
auto call_backward(M& model, Ctx& ctx, State&& state, Dy&& dy) {
  if constexpr (HasBackward<M, Ctx&, State, Dy>) {
    return model.backward(ctx, std::forward<State>(state), std::forward<Dy>(dy));
  } else if constexpr (HasBackward<M, State, Dy>) {
    return model.backward(std::forward<State>(state), std::forward<Dy>(dy));
  } else {
    return GoesNotBack();
  }
}

/// What `backward` returns, behind `before`, and without dx if no stage wants it.
template <bool gives_dx, class Result, class... Before>
auto backward_result(Result&& result, Before&&... before) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Result>, GoesNotBack>) {
    return GoesNotBack();
  } else {
    auto [dx, gradients] = std::forward<Result>(result);
    if constexpr (gives_dx) {
      return std::tuple{std::forward<Before>(before)..., std::move(dx), std::move(gradients)};
    } else {
      return std::tuple{std::forward<Before>(before)..., std::move(gradients)};
    }
  }
}

/// Calls `forward`, and keeps the state on the device.
struct ForwardAndSave : ModelProcedure {
  template <class M, class Ctx, class X>
  auto operator()(M& model, Ctx& ctx, X&& x) const {
    auto saved = call_forward_and_save(model, ctx, std::forward<X>(x));
    if constexpr (is_saved<decltype(saved)>) {
      return std::pair{std::move(saved.value), sharded(std::move(saved.state))};
    } else {
      return SavesNothing();
    }
  }
};

template <bool gives_dx>
struct Backward : ModelProcedure {
  template <class M, class Ctx, class State, class Dy>
  auto operator()(M& model, Ctx& ctx, State&& state, Dy&& dy) const {
    return backward_result<gives_dx>(call_backward(model, ctx, std::forward<State>(state), std::forward<Dy>(dy)));
  }
};

/// The last stage: `forward`, the loss, and `backward` at once, since nothing comes between them.
template <class Loss, bool gives_dx>
struct ForwardAndBackward : ModelProcedure {
  const Loss& loss;

  explicit ForwardAndBackward(const Loss& of) noexcept : loss(of) {}

  template <class M, class Ctx, class X, class Targets>
  auto operator()(M& model, Ctx& ctx, X&& x, Targets&& targets) const {
    auto saved = call_forward_and_save(model, ctx, std::forward<X>(x));
    if constexpr (is_saved<decltype(saved)>) {
      auto [value, dy] = call_forward(loss, ctx, saved.value, std::forward<Targets>(targets));
      return backward_result<gives_dx>(call_backward(model, ctx, std::as_const(saved.state), std::as_const(dy)),
                                       std::move(value));
    } else {
      return SavesNothing();
    }
  }
};

}}}  // namespace fanout::v0::detail
