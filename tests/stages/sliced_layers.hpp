// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of which each device has its part.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>
#include <support/simulated.hpp>

namespace fanout_test {

using Matrix = fanout::Tensor<double, 2>;
using Rows = fanout::View<const double, 2>;

inline Matrix fractions(std::size_t rows, std::size_t columns) {
  Matrix made({rows, columns});
  for (std::size_t i = 0; i < made.size(); ++i) made.data()[i] = 1.0 / static_cast<double>(i % 11 + 3) - 0.1;
  return made;
}

inline std::vector<double> elements(const Matrix& x) { return {x.begin(), x.end()}; }

/// y = x . weight^T
template <class Weight>
Matrix product(Rows x, const Weight& weight) {
  Matrix y({x.extent(0), weight.extent(0)});
  for (std::size_t row = 0; row < x.extent(0); ++row) {
    for (std::size_t o = 0; o < weight.extent(0); ++o) {
      double sum = 0;
      for (std::size_t i = 0; i < weight.extent(1); ++i) sum += weight(o, i) * x(row, i);
      y(row, o) = sum;
    }
  }
  return y;
}

/// Each device has some outputs.
struct Wide {
  fanout::Slice<Matrix, 0> weight;  // [outputs, inputs]

  auto forward(fanout::Context auto& ctx, Rows x) const { return fanout::concat<1>(product(x, weight.part(ctx))); }
};

/// Each device has some inputs, and takes the same columns of x.
struct Deep {
  fanout::Slice<Matrix, 1> weight;  // [outputs, inputs]

  auto forward(fanout::Context auto& ctx, Rows x) const {
    const fanout::RowRange columns = weight.range(ctx);
    Matrix mine({x.extent(0), columns.size()});
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      for (std::size_t i = 0; i < columns.size(); ++i) mine(row, i) = x(row, columns.first + i);
    }
    return fanout::psum(product(mine, weight.part(ctx)));
  }
};

template <class Check>
void on_devices(const Check& check) {
  for (std::size_t count = 1; count <= 4; ++count) {
    CAPTURE(count);
    check(fanout::host_devices(static_cast<int>(count)));
    check(simulated(count));
  }
}

}  // namespace fanout_test
