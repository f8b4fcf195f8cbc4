// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <fanout/array/view.hpp>
#include <fanout/model/forward.hpp>

namespace fanout { inline namespace v0 {

// Refuses a model that cannot run on its arguments. One sentence says why, as far as the compiler can tell.

namespace detail {

struct NamesForward {
  void forward();
};
struct NamesCall {
  void operator()();
};
template <class M, class Names>
struct BothNames : M, Names {};

/// True if M has no member `forward` and no call operator. If M has the name, whatever it means and whoever may use it,
/// the name is ambiguous in a class that inherits both.
template <class M>
concept NamesNothing = std::is_class_v<M> && !std::is_final_v<M> && requires {
  &BothNames<M, NamesForward>::forward;
  &BothNames<M, NamesCall>::operator();
};

/// A model that takes its context by value. The test passes a temporary, which need not be copied.
template <class M, class Ctx, class... A>
concept ForwardCopiesContext = requires(M& model, Ctx (&make_context)(), A&&... args) {
  model.forward(make_context(), static_cast<A&&>(args)...);
};
template <class M, class Ctx, class... A>
concept CallCopiesContext = requires(M& model, Ctx (&make_context)(), A&&... args) {
  model(make_context(), static_cast<A&&>(args)...);
};

/// The type that an argument must have for a `forward` that writes to it.
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

/// Stands for an object if only the type of an expression counts. No program that calls it compiles.
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

/// A condition that names what a model receives: compilers print it in the error.
template <class M, class... Handed>
inline constexpr bool forward_takes = false;

/// Refuses a model that is not Forwardable, with the sentence that fits best. Returns what its forward returns if that
/// is known, otherwise a number. So the caller's use of the result is no second error.
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
                  "fanout: forward cannot be called with its arguments (this diagnostic shows the model and the "
                  "types): it takes other arguments, or more or fewer, is private or ambiguous, or does not compile "
                  "with these; a Tensor arrives as View<const T, R>, a std::vector as std::span<const T>, anything "
                  "else by const reference");
    return float();
  }
}

}  // namespace detail
}}  // namespace fanout::v0
