// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <harness/report.hpp>
#include <harness/slice.hpp>
#include <work/lines.hpp>

namespace benchmarks {

/// Three layers of `width` features each, with bias and ReLU, the input and what comes out.
struct Mlp {
  static constexpr std::size_t layers = 3;

  std::size_t rows;
  std::size_t width;
  Floats weights[layers];  ///< [in, out]
  Floats bias[layers];
  Floats input;     ///< [rows, width]
  Floats expected;  ///< [rows, width]

  Mlp(std::size_t row_count, std::size_t features);

  /// Says how many floating-point operations of the multiplications of matrices there were in a nanosecond.
  Report& set_rate(Report& report) const {
    const double operations = 2.0 * static_cast<double>(rows * width * width * layers);
    return report.set("gflops", operations / report.value_of("median_ns"));
  }

  /// Ends the program if these are not the right results, up to rounding.
  void check(const Slice& slice, const float* results) const;
};

/// Adds the bias and cuts off what is negative: `rows` x `columns` elements whose rows stand `stride` apart.
void bias_relu(float* y, std::size_t stride, std::size_t rows, std::size_t columns, const float* bias) noexcept;

}  // namespace benchmarks
