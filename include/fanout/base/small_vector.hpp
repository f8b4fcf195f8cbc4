// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/exchange.hpp>

namespace fanout::inline v0 {

/// A vector that grows at its end and needs no allocation up to N elements, for what there is one of per device; T has
/// a default value. Works while compiling, and may be a constant as long as it holds no more than N. One that was moved
/// from is empty. Not made of a std::vector, since each kind of that costs all who include it as much as ten of these.
template <class T, std::size_t N = 8>
class SmallVector {
 public:
  constexpr SmallVector() = default;
  constexpr SmallVector(const SmallVector& other) {
    for (const T& value : other) push_back(value);
  }
  constexpr SmallVector(SmallVector&& other) noexcept { swap(other); }
  constexpr SmallVector& operator=(const SmallVector& other) {
    SmallVector copy(other);
    swap(copy);
    return *this;
  }
  constexpr SmallVector& operator=(SmallVector&& other) noexcept {
    swap(other);
    return *this;
  }
  constexpr ~SmallVector() { delete[] many_; }

  /// `value` may be one of its own elements.
  constexpr void push_back(const T& value) {
    if (size_ < capacity_) {
      data()[size_] = value;
    } else {
      T* more = new T[2 * capacity_]{};
      try {
        for (std::size_t i = 0; i < size_; ++i) more[i] = data()[i];
        more[size_] = value;
      } catch (...) {
        delete[] more;
        throw;
      }
      delete[] detail::exchange(many_, more);
      capacity_ *= 2;
    }
    ++size_;
  }

  constexpr std::size_t size() const noexcept { return size_; }
  constexpr const T& operator[](std::size_t i) const noexcept { return begin()[i]; }
  constexpr const T* begin() const noexcept { return many_ == nullptr ? few_ : many_; }
  constexpr const T* end() const noexcept { return begin() + size_; }

  friend constexpr bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (!(a[i] == b[i])) return false;
    }
    return true;
  }

 private:
  constexpr T* data() noexcept { return many_ == nullptr ? few_ : many_; }
  constexpr void swap(SmallVector& other) noexcept {
    for (std::size_t i = 0; i < N; ++i) detail::swap(few_[i], other.few_[i]);
    detail::swap(many_, other.many_);
    detail::swap(size_, other.size_);
    detail::swap(capacity_, other.capacity_);
  }

  T few_[N]{};
  T* many_ = nullptr;  // all elements, when they are more than the few
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
};

}  // namespace fanout::inline v0
