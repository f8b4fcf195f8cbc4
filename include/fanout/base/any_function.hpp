// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/base/polymorphic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

template <class Signature>
class AnyFunction;

/// A function object of any type, held by value and called as const; may be empty. For functions that are set once and
/// called rarely, so that they need not be template parameters. It allocates when it is made or copied. A call is one
/// virtual call.
template <class R, class... A>
class AnyFunction<R(A...)> {
 public:
  AnyFunction() noexcept = default;

  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, AnyFunction> &&
             std::is_invocable_r_v<R, const std::decay_t<F>&, A...> && std::is_copy_constructible_v<std::decay_t<F>>)
  AnyFunction(F&& function)  // NOLINT(*-explicit-constructor,*-forwarding-reference-overload): as std::function
      : function_(new Holding<std::decay_t<F>>(std::forward<F>(function))) {}

  /// True if it holds a function.
  explicit operator bool() const noexcept { return static_cast<bool>(function_); }

  /// Calls the function, which must not be empty.
  R operator()(A... arguments) const { return function_->call(std::forward<A>(arguments)...); }

 private:
  struct Held {
    Held() = default;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    virtual ~Held() = default;
    virtual R call(A... arguments) const = 0;
    virtual Held* copy() const = 0;
  };
  template <class F>
  struct Holding final : Held {
    explicit Holding(F from) : function(std::move(from)) {}
    R call(A... arguments) const override { return function(std::forward<A>(arguments)...); }
    Held* copy() const override { return new Holding(function); }
    const F function;
  };

  Polymorphic<Held> function_;
};

}}}  // namespace fanout::v0::detail
