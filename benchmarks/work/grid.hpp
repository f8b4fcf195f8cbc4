// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>

namespace benchmarks {

/// The extents of an array of about so many elements, about as many rows as columns, both even.
struct Grid {
  std::size_t rows = 0;
  std::size_t columns = 0;

  explicit Grid(double elements)
      : rows(even(std::sqrt(elements))), columns(even(elements / static_cast<double>(rows))) {}

  std::size_t size() const { return rows * columns; }

 private:
  static std::size_t even(double x) { return x < 2 ? 2 : 2 * static_cast<std::size_t>(x / 2); }
};

/// The value of the i-th element of what goes in, which is exact in a float.
inline float element(std::size_t i) { return static_cast<float>(i % 1021); }

}  // namespace benchmarks
