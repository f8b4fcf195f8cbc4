// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace fanout { inline namespace v0 { namespace detail {

/// A fixed number of objects that are built in place and never move, so they may be atomics and locks. Up to N of them
/// need no allocation: the state of a call is kept in these. Objects are destroyed in reverse order.
template <class T, std::size_t N = 8>
class InlineArray {
 public:
  /// `size` objects, value-initialised.
  explicit InlineArray(std::size_t size) : InlineArray(size, ValueInitialised{}) {}

  /// `size` objects that are not set. The first pointer is null.
  static InlineArray unset(std::size_t size) requires std::is_trivially_default_constructible_v<T> {
    return InlineArray(size, Unset{});
  }

  /// Builds object i in place from what `make(i)` returns. If that throws, destroys the objects built so far and throws
  /// on.
  template <class Make>
  InlineArray(std::size_t size, const Make& make) {
    allocate(size);
    if constexpr (noexcept(T(make(size)))) {
      for (std::size_t i = 0; i < size; ++i) ::new (static_cast<void*>(data_ + i)) T(make(i));
      size_ = size;
    } else {
      try {
        for (; size_ < size; ++size_) ::new (static_cast<void*>(data_ + size_)) T(make(size_));
      } catch (...) {
        destroy();
        throw;
      }
    }
  }
  InlineArray(const InlineArray&) = delete;
  InlineArray& operator=(const InlineArray&) = delete;
  ~InlineArray() { destroy(); }

  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  std::size_t size() const noexcept { return size_; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }

 private:
  struct Unset {};
  InlineArray(std::size_t size, Unset) : size_(size) { allocate(size); }

  void allocate(std::size_t size) {
    if (size > N) data_ = static_cast<T*>(::operator new (bytes_of(size), std::align_val_t{alignof(T)}));
    // Readers always find a first element, but compilers may not see that, and would warn.
    if constexpr (std::is_pointer_v<T>) ::new (static_cast<void*>(inline_data())) T();
  }

  static std::size_t bytes_of(std::size_t size) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer, and its size is what is meant
    constexpr std::size_t each = sizeof(T);
    if (size > PTRDIFF_MAX / each) throw std::bad_alloc();  // the number of bytes may overflow
    return size * each;
  }

  struct ValueInitialised {
    T operator()(std::size_t) const noexcept(noexcept(T())) { return T(); }
  };

  void destroy() noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      for (std::size_t i = size_; i > 0; --i) data_[i - 1].~T();
    }
    if (data_ != inline_data()) ::operator delete (static_cast<void*>(data_), std::align_val_t{alignof(T)});
  }
  T* inline_data() noexcept { return static_cast<T*>(static_cast<void*>(bytes_)); }

  T* data_ = inline_data();
  std::size_t size_ = 0;
  alignas(T) std::byte bytes_[N * sizeof(T)];  // NOLINT(bugprone-sizeof-expression)
};

}}}  // namespace fanout::v0::detail
