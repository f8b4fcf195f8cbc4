// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/gather/sharded.hpp>
#include <fanout/model/forward.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/model/saved.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// What the shards of a stage do in training, in place of `forward` alone.

template <class M, class... A>
concept HasBackward = requires(M& model, A&&... args) {
  model.backward(static_cast<A&&>(args)...);
};
template <class M, class... A>
concept HasBackwardInput = requires(M& model, A&&... args) {
  model.backward_input(static_cast<A&&>(args)...);
};
template <class M, class... A>
concept HasBackwardWeights = requires(M& model, A&&... args) {
  model.backward_weights(static_cast<A&&>(args)...);
};

/// Stand for the result of a model that cannot be trained.
struct SavesNothing {};
struct GoesNotBack {};

/// dx, and what backward_weights() needs to find the gradients.
template <class Dx, class Kept>
struct HalfBack {
  Dx dx;
  Kept kept;
};
template <class Pair>
auto half_back(Pair&& returned) {
  auto [dx, kept] = std::forward<Pair>(returned);
  return HalfBack<decltype(dx), decltype(kept)>{std::move(dx), std::move(kept)};
}

/// Calls `backward(ctx, state, dy)`, or else `backward_input` with the same arguments; without the context if it wants
/// none.
template <class M, class Ctx, class State, class Dy>
auto call_backward(M& model, Ctx& ctx, State&& state, Dy&& dy) {
  if constexpr (HasBackward<M, Ctx&, State, Dy>) {
    return model.backward(ctx, std::forward<State>(state), std::forward<Dy>(dy));
  } else if constexpr (HasBackward<M, State, Dy>) {
    return model.backward(std::forward<State>(state), std::forward<Dy>(dy));
  } else if constexpr (HasBackwardInput<M, Ctx&, State, Dy>) {
    return half_back(model.backward_input(ctx, std::forward<State>(state), std::forward<Dy>(dy)));
  } else if constexpr (HasBackwardInput<M, State, Dy>) {
    return half_back(model.backward_input(std::forward<State>(state), std::forward<Dy>(dy)));
  } else {
    return GoesNotBack();
  }
}

/// What `backward` returns, behind `before`, and without dx if no stage wants it. What backward_weights() needs stays
/// on the device.
template <bool gives_dx, class Dx, class End, class... Before>
auto with_dx(Dx&& dx, End&& end, Before&&... before) {
  if constexpr (gives_dx) {
    return std::make_tuple(std::forward<Before>(before)..., std::forward<Dx>(dx), std::forward<End>(end));
  } else {
    return std::make_tuple(std::forward<Before>(before)..., std::forward<End>(end));  // also of a tuple alone
  }
}
template <bool gives_dx, class Result, class... Before>
auto backward_result(Result&& result, Before&&... before) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Result>, GoesNotBack>) {
    return GoesNotBack();
  } else if constexpr (requires { result.kept; }) {
    return with_dx<gives_dx>(std::move(result.dx), sharded(std::move(result.kept)), std::forward<Before>(before)...);
  } else {
    auto [dx, gradients] = std::forward<Result>(result);
    return with_dx<gives_dx>(std::move(dx), std::move(gradients), std::forward<Before>(before)...);
  }
}

/// Calls `forward_and_save` if there is one, for a model whose `forward` must save nothing; otherwise `forward`.
template <class M, class Ctx, class... X>
auto call_saving_forward(M& model, Ctx& ctx, X&&... x) {
  if constexpr (requires { model.forward_and_save(std::forward<X>(x)...); }) {
    return model.forward_and_save(std::forward<X>(x)...);
  } else {
    return call_forward_and_save(model, ctx, std::forward<X>(x)...);
  }
}

/// Calls `forward`, and keeps the state on the device. That of the last stage keeps its result there, too.
template <bool keeps_result>
struct ForwardAndSave : ModelProcedure {
  template <class M, class Ctx, class... X>
  auto operator()(M& model, Ctx& ctx, X&&... x) const {
    auto saved = call_saving_forward(model, ctx, std::forward<X>(x)...);
    if constexpr (!is_saved<decltype(saved)>) {
      return SavesNothing();
    } else if constexpr (keeps_result) {
      return std::pair{sharded(std::move(saved.value)), sharded(std::move(saved.state))};
    } else {
      return std::pair{std::move(saved.value), sharded(std::move(saved.state))};
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

/// The last stage on the way back: the loss of what it has returned comes first.
template <class Loss, bool gives_dx>
struct LossAndBackward : ModelProcedure {
  const Loss& loss;

  explicit LossAndBackward(const Loss& of) noexcept : loss(of) {}

  template <class M, class Ctx, class State, class Y, class Targets>
  auto operator()(M& model, Ctx& ctx, State&& state, Y&& y, Targets&& targets) const {
    auto [value, dy] = call_forward(loss, ctx, std::forward<Y>(y), std::forward<Targets>(targets));
    auto result = backward_result<gives_dx>(call_backward(model, ctx, std::forward<State>(state), std::as_const(dy)),
                                            std::move(value));
    if constexpr (std::is_same_v<decltype(result), GoesNotBack> || is_view<decltype(dy)>) {
      return result;
    } else {
      // What `backward` returns may have views of dy, which are copied when the call gathers its results.
      return std::tuple_cat(std::move(result), std::tuple{sharded(std::move(dy))});
    }
  }
};

/// Calls `backward_weights(ctx, kept)`, or without the context if it wants none.
struct BackwardWeights : ModelProcedure {
  template <class M, class Ctx, class Kept>
  auto operator()(M& model, Ctx& ctx, Kept&& kept) const {
    if constexpr (HasBackwardWeights<M, Ctx&, Kept>) {
      return model.backward_weights(ctx, std::forward<Kept>(kept));
    } else if constexpr (HasBackwardWeights<M, Kept>) {
      return model.backward_weights(std::forward<Kept>(kept));
    } else {
      return GoesNotBack();
    }
  }
};

}}}  // namespace fanout::v0::detail
