// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace benchmarks {

/// Memory that begins with a cache line, so that no contender is slower for where its arrays happen to lie.
template <class T>
struct OnLines {
  using value_type = T;

  OnLines() = default;
  template <class U>
  OnLines(const OnLines<U>&) noexcept {}  // NOLINT(google-explicit-constructor): as all allocators

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* data, std::size_t) noexcept { ::operator delete(data, std::align_val_t(64)); }
  friend bool operator==(const OnLines&, const OnLines&) = default;
};

using Floats = std::vector<float, OnLines<float>>;

}  // namespace benchmarks
