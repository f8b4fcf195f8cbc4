// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <type_traits>
#include <utility>

namespace fanout { inline namespace v0 {

namespace detail {

template <class M, class... A>
concept HasForward = requires(M& model, A&&... args) {
  model.forward(static_cast<A&&>(args)...);
};
template <class M, class... A>
concept HasCall = requires(M& model, A&&... args) {
  model(static_cast<A&&>(args)...);
};
template <class M>
concept WantsContext = requires {
  typename std::remove_cv_t<M>::wants_context;
};
// Concepts, since only && of concepts skips its right side if the left side is false. Asking for a call may instantiate
// a body whose return type is deduced, and an error in that body is a hard error.
template <class M, class... A>
concept WantsForwardWith = WantsContext<M> && HasForward<M, A...>;
template <class M, class... A>
concept WantsCallWith = WantsContext<M> && HasCall<M, A...>;

/// The base of what a shard does with its replica instead of calling `forward`: the first argument of the call. It is
/// called with the model, the context and the other arguments.
struct ModelProcedure {};

template <class... A>
inline constexpr bool begins_with_procedure = false;
template <class P, class... A>
inline constexpr bool begins_with_procedure<P, A...> = std::is_base_of_v<ModelProcedure, std::remove_cvref_t<P>>;

template <class M, class Ctx, class P, class... A>
auto call_procedure(M& model, Ctx& ctx, P&& procedure, A&&... args)
    -> decltype(procedure(model, ctx, std::forward<A>(args)...)) {
  return procedure(model, ctx, std::forward<A>(args)...);
}
template <class M, class Ctx, class... A>
concept HasProcedure = requires(M& model, Ctx& ctx, A&&... args) {
  call_procedure(model, ctx, static_cast<A&&>(args)...);
};

/// True for what saved() returns: a result, and a state for backward.
template <class R>
inline constexpr bool is_saved = false;

enum class ForwardForm { none, forward, forward_with_context, call, call_with_context, procedure };

constexpr bool is_any(ForwardForm form) { return form != ForwardForm::none; }
constexpr bool is_forward(ForwardForm form) {
  return form == ForwardForm::forward || form == ForwardForm::forward_with_context;
}

/// The form that a model M (const or not) has for these arguments. A `forward` takes precedence over a call operator.
/// The arguments alone take precedence over the arguments behind a context, unless the model has a member type
/// `wants_context`.
template <class M, class Ctx, class... A>
consteval ForwardForm forward_form() {
  // Asks for a form only if those before it do not exist, since asking may instantiate a body.
  if constexpr (begins_with_procedure<A...>) {
    return HasProcedure<M, Ctx, A...> ? ForwardForm::procedure : ForwardForm::none;
  } else if constexpr (WantsForwardWith<M, Ctx&, A...>) {
    return ForwardForm::forward_with_context;
  } else if constexpr (HasForward<M, A...>) {
    return ForwardForm::forward;
  } else if constexpr (HasForward<M, Ctx&, A...>) {
    return ForwardForm::forward_with_context;
  } else if constexpr (WantsCallWith<M, Ctx&, A...>) {
    return ForwardForm::call_with_context;
  } else if constexpr (HasCall<M, A...>) {
    return ForwardForm::call;
  } else if constexpr (HasCall<M, Ctx&, A...>) {
    return ForwardForm::call_with_context;
  } else {
    return ForwardForm::none;
  }
}

template <class M, class Ctx, class... A>
consteval bool has_const_forward() {
  constexpr ForwardForm form = forward_form<const M, Ctx, A...>();
  if constexpr (is_any(form) && !is_forward(form)) return !is_forward(forward_form<M, Ctx, A...>());
  return is_any(form);
}

// Arguments are converted here to what `forward` takes: `model(x, 4)` if it takes a std::size_t. A warning about such a
// conversion would point into this header, not at the caller.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
/// Calls `forward`, and returns what it returns: see saved().
template <class M, class Ctx, class... A>
[[gnu::always_inline]] inline decltype(auto) call_forward_and_save(M& model, Ctx& ctx, A&&... args) {
  constexpr ForwardForm form = forward_form<M, Ctx, A...>();
  if constexpr (form == ForwardForm::forward) {
    return model.forward(std::forward<A>(args)...);
  } else if constexpr (form == ForwardForm::forward_with_context) {
    return model.forward(ctx, std::forward<A>(args)...);
  } else if constexpr (form == ForwardForm::call) {
    return model(std::forward<A>(args)...);
  } else if constexpr (form == ForwardForm::procedure) {
    return call_procedure(model, ctx, std::forward<A>(args)...);
  } else {
    return model(ctx, std::forward<A>(args)...);
  }
}

/// Calls `forward`, and drops the state that it saves.
template <class M, class Ctx, class... A>
decltype(auto) call_forward(M& model, Ctx& ctx, A&&... args) {
  using R = decltype(call_forward_and_save(model, ctx, std::forward<A>(args)...));
  if constexpr (is_saved<std::remove_cvref_t<R>>) {
    return std::remove_cvref_t<R>(call_forward_and_save(model, ctx, std::forward<A>(args)...)).value_alone();
  } else {
    return call_forward_and_save(model, ctx, std::forward<A>(args)...);
  }
}
#pragma GCC diagnostic pop

}  // namespace detail

/// A model whose `forward` is const for these arguments. It may run on several threads at once, as const means in the
/// standard library, so host replicas share the original. A const call operator does not replace a `forward` that is
/// not const.
template <class M, class Ctx, class... A>
concept ConstForward = detail::has_const_forward<M, Ctx, A...>();

/// A model that can run on these arguments: it has `forward(args...)`, `forward(ctx, args...)`, or a call operator that
/// takes one of these.
template <class M, class Ctx, class... A>
concept Forwardable = ConstForward<M, Ctx, A...> || detail::is_any(detail::forward_form<M, Ctx, A...>());

}}  // namespace fanout::v0
