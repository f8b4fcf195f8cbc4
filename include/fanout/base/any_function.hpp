// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/base/exchange.hpp>

namespace fanout { inline namespace v0 { namespace detail {

template <class Signature>
class AnyFunction;

/// A function object of any type, held by value and called as const; may be empty. For functions that are set once and
/// called rarely, so that they need not be template parameters. A call costs one call through a function pointer.
/// Allocates.
template <class R, class... A>
class AnyFunction<R(A...)> {
 public:
  AnyFunction() noexcept = default;

  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, AnyFunction> &&
             std::is_invocable_r_v<R, const std::decay_t<F>&, A...> && std::is_copy_constructible_v<std::decay_t<F>>)
  AnyFunction(F&& function)  // NOLINT(*-explicit-constructor,*-forwarding-reference-overload): as std::function
      : operations_(&operations_of<std::decay_t<F>>), function_(new std::decay_t<F>(std::forward<F>(function))) {}

  // Not movable: a moved-from function could not be called any more.
  AnyFunction(const AnyFunction& other)
      : operations_(other.operations_), function_(other ? operations_->copy(other.function_) : nullptr) {}
  AnyFunction& operator=(const AnyFunction& other) {  // by value, the copy would be made where nothing may throw
    if (this == &other) return *this;
    AnyFunction copy(other);
    detail::swap(operations_, copy.operations_);
    detail::swap(function_, copy.function_);
    return *this;
  }
  ~AnyFunction() {
    if (*this) operations_->destroy(function_);
  }

  /// True if it holds a function.
  explicit operator bool() const noexcept { return operations_ != nullptr; }

  /// Calls the function, which must not be empty.
  R operator()(A... arguments) const { return operations_->call(function_, std::forward<A>(arguments)...); }

 private:
  struct Operations {
    R (*call)(const void*, A...);
    void* (*copy)(const void*);
    void (*destroy)(void*) noexcept;
  };
  template <class F>
  static constexpr Operations operations_of = {
      [](const void* function, A... arguments) -> R {
        return (*static_cast<const F*>(function))(std::forward<A>(arguments)...);
      },
      [](const void* function) -> void* { return new F(*static_cast<const F*>(function)); },
      [](void* function) noexcept { delete static_cast<F*>(function); }};

  const Operations* operations_ = nullptr;
  void* function_ = nullptr;
};

}}}  // namespace fanout::v0::detail
