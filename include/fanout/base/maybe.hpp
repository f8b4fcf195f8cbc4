// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include <fanout/base/exchange.hpp>

namespace fanout::v0 {

/// A T or nothing, as std::optional is: its header costs more to include than much of fanout.
template <class T>
class Maybe {
 public:
  Maybe() noexcept {}                              // NOLINT(modernize-use-equals-default): of a union
  Maybe(const T& value) { emplace(value); }        // NOLINT(google-explicit-constructor): is a T
  Maybe(T&& value) { emplace(std::move(value)); }  // NOLINT(google-explicit-constructor): is a T
  Maybe(const Maybe& other) {
    if (other.has_) emplace(other.value_);
  }
  Maybe(Maybe&& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    if (other.has_) emplace(std::move(other.value_));
  }
  Maybe& operator=(const Maybe& other) {
    if (this == &other) return *this;
    Maybe copy(other);
    return *this = std::move(copy);
  }
  Maybe& operator=(Maybe&& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    if (this == &other) return *this;
    reset();
    if (other.has_) emplace(std::move(other.value_));
    return *this;
  }
  ~Maybe() { reset(); }

  /// Destroys what is there, and makes a T in its place.
  template <class... A>
  T& emplace(A&&... arguments) {
    reset();
    ::new (static_cast<void*>(&value_)) T(std::forward<A>(arguments)...);
    has_ = true;
    return value_;
  }
  void reset() noexcept {
    if (detail::exchange(has_, false)) value_.~T();
  }

  bool has_value() const noexcept { return has_; }
  explicit operator bool() const noexcept { return has_; }

  /// What is there; there must be one.
  T& operator*() noexcept { return value_; }
  const T& operator*() const noexcept { return value_; }
  T* operator->() noexcept { return &value_; }
  const T* operator->() const noexcept { return &value_; }

  const T& value_or(const T& other) const noexcept { return has_ ? value_ : other; }

  friend bool operator==(const Maybe& a, const Maybe& b) {
    return a.has_ == b.has_ && (!a.has_ || a.value_ == b.value_);
  }

 private:
  union {
    T value_;
  };
  bool has_ = false;
};

}  // namespace fanout::v0
