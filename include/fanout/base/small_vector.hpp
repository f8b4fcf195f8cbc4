// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

/// An array of N elements.
template <class T, std::size_t N>
struct FewElements {
  static constexpr FewElements make() { return FewElements(); }
  T elements[N]{};
};

/// The same, but uninitialised except in constant expressions: most of the elements are never used.
template <class T, std::size_t N>
  requires(std::is_trivially_copyable_v<T>)
struct FewElements<T, N> {
  static constexpr FewElements make() noexcept {
    return std::is_constant_evaluated() ? FewElements(true) : FewElements();
  }
  constexpr explicit FewElements(bool) noexcept : elements{} {}
  FewElements() noexcept {}  // NOLINT(modernize-use-equals-default): it sets none

  union {
    T elements[N];
  };
};

/// A vector with push_back that needs no allocation up to N elements. For data that exists once per device. T must be
/// default-constructible. Works in constant expressions, and may be a constant of up to N elements. A moved-from vector
/// is empty. It does not use std::vector, since each instance of that costs as much compile time as ten of these.
template <class T, std::size_t N = 8>
class SmallVector {
 public:
  constexpr SmallVector() {}  // NOLINT(modernize-use-equals-default): that would set all of it to zero
  /// `size` elements: element i is `make(i)`.
  template <class Make>
  constexpr SmallVector(std::size_t size, const Make& make) : SmallVector() {
    if (size > N) {
      while (size_ < size) push_back(make(size_));
    } else {
      for (std::size_t i = 0; i < size; ++i) few_.elements[i] = make(i);
      size_ = size;
    }
  }
  constexpr SmallVector(const SmallVector& other) : SmallVector() {
    if (other.size_ > N) {
      append(other);
    } else {
      for (; size_ < other.size_; ++size_) few_.elements[size_] = other[size_];
    }
  }
  constexpr SmallVector(SmallVector&& other) noexcept { take(other); }
  constexpr SmallVector& operator=(const SmallVector& other) {
    if (this == &other) return *this;
    SmallVector copy(other);
    return *this = static_cast<SmallVector&&>(copy);
  }
  constexpr SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    delete[] std::exchange(many_, nullptr);
    take(other);
    return *this;
  }
  constexpr ~SmallVector() { delete[] many_; }

  /// Appends a copy. `value` may be an element of this vector.
  constexpr void push_back(const T& value) {
    if (size_ == capacity_) return grow(value);
    data()[size_++] = value;
  }

  constexpr std::size_t size() const noexcept { return size_; }
  constexpr const T& operator[](std::size_t i) const noexcept { return begin()[i]; }
  constexpr const T* begin() const noexcept { return many_ == nullptr ? few_.elements : many_; }
  constexpr const T* end() const noexcept { return begin() + size_; }

  friend constexpr bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (!(a[i] == b[i])) return false;
    }
    return true;
  }

 private:
  constexpr T* data() noexcept { return many_ == nullptr ? few_.elements : many_; }

  [[gnu::cold, gnu::noinline]] constexpr void append(const SmallVector& other) {
    for (const T& value : other) push_back(value);
  }
  [[gnu::cold, gnu::noinline]] constexpr void grow(T value) {
    T* more = new T[2 * capacity_]{};
    try {
      for (std::size_t i = 0; i < size_; ++i) more[i] = data()[i];
      more[size_] = value;
    } catch (...) {
      delete[] more;
      throw;
    }
    delete[] std::exchange(many_, more);
    capacity_ *= 2;
    ++size_;
  }

  /// Moves from `other` and leaves it empty. This vector must hold no allocation.
  constexpr void take(SmallVector& other) noexcept {
    many_ = std::exchange(other.many_, nullptr);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, N);
    if (many_ != nullptr) return;
    for (std::size_t i = 0; i < size_; ++i) few_.elements[i] = static_cast<T&&>(other.few_.elements[i]);
  }

  FewElements<T, N> few_ = FewElements<T, N>::make();
  T* many_ = nullptr;  // all elements, once there are more than N
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
};

}}}  // namespace fanout::v0::detail
