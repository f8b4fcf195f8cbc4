// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <fanout/array/view.hpp>
#include <fanout/model/forward.hpp>

namespace fanout { inline namespace v0 {

// Why a model cannot run on what it is handed, as far as the compiler can tell, in one sentence each.

namespace detail {

struct NamesForward {
  void forward();
};
struct NamesCall {
  void operator()();
};
template <class M, class Names>
struct BothNames : M, Names {};

/// True if M has no member `forward` and no call operator at all. A name that M has too, whatever it means there and
/// whoever may use it, is ambiguous in a class that inherits both.
template <class M>
concept NamesNothing = std::is_class_v<M> && !std::is_final_v<M> && requires {
  &BothNames<M, NamesForward>::forward;
  &BothNames<M, NamesCall>::operator();
};

/// A model that would copy the context, which is asked by handing it one that it need not copy.
template <class M, class Ctx, class... A>
concept ForwardCopiesContext = requires(M& model, Ctx (&make_context)(), A&&... args) {
  model.forward(make_context(), static_cast<A&&>(args)...);
};
template <class M, class Ctx, class... A>
concept CallCopiesContext = requires(M& model, Ctx (&make_context)(), A&&... args) {
  model(make_context(), static_cast<A&&>(args)...);
};

/// What an argument would have to be for one who wants to write to it.
template <class A>
struct writable {
  using type = A;
};
template <class T, std::size_t R>
struct writable<View<const T, R>> {
  using type = View<T, R>;
};
template <class T, std::size_t N>
struct writable<std::span<const T, N>> {
  using type = std::span<T, N>;
};
template <class A>
using writable_t = typename writable<std::remove_cvref_t<A>>::type;

/// Stands for an object where only the type of what is done with it counts: no program that calls it compiles.
template <class X>
[[noreturn]] X instance() {
  throw 0;
}

template <class M, class Ctx, class... W>
auto refuse_writing() {
  static_assert(sizeof(M) == 0,
                "fanout: forward would write to its arguments, which it can only read; take a Tensor as "
                "View<const T, R>, a std::vector as std::span<const T>, anything else by const reference or by value; "
                "or pass inout(x), whose rows forward writes in place");
  return call_forward(instance<M&>(), instance<Ctx&>(), instance<W&>()...);
}

/// As a condition that names what a model is handed: compilers print it where that is refused.
template <class M, class... Handed>
inline constexpr bool forward_takes = false;

/// Refuses a model that is not Forwardable with the sentence that fits it best. Returns what its forward returns where
/// that can be told, else a number, so that what the caller does with the result is no second error.
template <class M, class Ctx, class... A>
auto refuse_unforwardable() {
  if constexpr (is_any(forward_form<M, Ctx, std::remove_cvref_t<A>&...>())) {
    return refuse_writing<M, Ctx, std::remove_cvref_t<A>...>();
  } else if constexpr (is_any(forward_form<M, Ctx, writable_t<A>&...>())) {
    return refuse_writing<M, Ctx, writable_t<A>...>();
  } else if constexpr (ForwardCopiesContext<M, Ctx, A...> || CallCopiesContext<M, Ctx, A...>) {
    static_assert(Forwardable<M, Ctx, A...>,
                  "fanout: forward takes its context by value, and a context cannot be copied; take it by reference, "
                  "as `fanout::Context auto& ctx`");
    if constexpr (ForwardCopiesContext<M, Ctx, A...>) {
      return instance<M&>().forward(instance<Ctx>(), instance<A>()...);
    } else {
      return instance<M&>()(instance<Ctx>(), instance<A>()...);
    }
  } else if constexpr (std::is_pointer_v<M> && !std::is_function_v<std::remove_pointer_t<M>>) {
    static_assert(Forwardable<M, Ctx, A...>,
                  "fanout: the model is a pointer; pass the model itself, since a ParallelModel owns its model");
    return float();
  } else if constexpr (NamesNothing<M>) {
    static_assert(Forwardable<M, Ctx, A...>,
                  "fanout: the model has no forward and no call operator; give it a forward(args...) or a "
                  "forward(ctx, args...)");
    return float();
  } else {
    static_assert(forward_takes<M, A...>,
                  "fanout: forward cannot be called with what it is handed (the model and the types stand in this "
                  "diagnostic): it takes other arguments, is private or ambiguous, or does not compile with these; a "
                  "Tensor arrives as View<const T, R>, a std::vector as "
                  "std::span<const T>, anything else by const reference");
    return float();
  }
}

}  // namespace detail
}}  // namespace fanout::v0
