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
// Concepts, since only in these && leaves its right side alone where the left is false: a call that nobody asked for may
// be no mere refusal but an error inside a body whose return type is deduced.
template <class M, class... A>
concept WantsForwardWith = WantsContext<M> && HasForward<M, A...>;
template <class M, class... A>
concept WantsCallWith = WantsContext<M> && HasCall<M, A...>;

enum class ForwardForm { none, forward, forward_with_context, call, call_with_context };

constexpr bool is_any(ForwardForm form) { return form != ForwardForm::none; }
constexpr bool is_forward(ForwardForm form) {
  return form == ForwardForm::forward || form == ForwardForm::forward_with_context;
}

/// Which of the four forms a model M (const or not) has for these arguments: a `forward` goes before a call operator,
/// and the arguments alone before the arguments behind a context, unless the model says that it wants the context.
template <class M, class Ctx, class... A>
consteval ForwardForm forward_form() {
  // Each form is asked for only where those before it are not there, since asking may instantiate a body.
  if constexpr (WantsForwardWith<M, Ctx&, A...>) {
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

// Arguments are converted here to what forward takes: `model(x, 4)` where it takes a std::size_t. The warnings that the
// compiler would have for the caller's call have no place in a header of ours.
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#endif
template <class M, class Ctx, class... A>
decltype(auto) call_forward(M& model, Ctx& ctx, A&&... args) {
  constexpr ForwardForm form = forward_form<M, Ctx, A...>();
  if constexpr (form == ForwardForm::forward) {
    return model.forward(std::forward<A>(args)...);
  } else if constexpr (form == ForwardForm::forward_with_context) {
    return model.forward(ctx, std::forward<A>(args)...);
  } else if constexpr (form == ForwardForm::call) {
    return model(std::forward<A>(args)...);
  } else {
    return model(ctx, std::forward<A>(args)...);
  }
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

}  // namespace detail

/// A model whose `forward` is const for these arguments: safe to run on several threads at once, as const means in the
/// standard library, so that host replicas share the original. A const call operator does not stand in for a `forward`
/// that is not const.
template <class M, class Ctx, class... A>
concept ConstForward = detail::has_const_forward<M, Ctx, A...>();

/// A model that can run on these arguments: it has `forward(args...)`, `forward(ctx, args...)`, or a call operator that
/// takes one of these.
template <class M, class Ctx, class... A>
concept Forwardable = ConstForward<M, Ctx, A...> || detail::is_any(detail::forward_form<M, Ctx, A...>());

}}  // namespace fanout::v0
