// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/annotate.hpp>
#include <fanout/context/context.hpp>
#include <fanout/context/launch.hpp>

namespace examples {

// Plain loops over rows, which lie contiguously, for whatever device. The sizes of what is combined agree.

FANOUT_HOST_DEVICE inline double dot(fanout::View<const double, 1> a, fanout::View<const double, 1> b) {
  assert(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The first of the largest elements. x is not empty.
FANOUT_HOST_DEVICE inline std::size_t index_of_largest(fanout::View<const double, 1> x) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < x.size(); ++i) best = x[best] < x[i] ? i : best;
  return best;
}

/// log(exp(x[0]) + exp(x[1]) + ...), without overflow: the largest is taken out of the sum. x is not empty.
FANOUT_HOST_DEVICE inline double log_sum_exp(fanout::View<const double, 1> x) {
  const double largest = x[index_of_largest(x)];
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

/// What launch() does for each element of the sum, over all rows, of left[row, i] * right[row, k].
struct SumOfProducts {
  fanout::View<const double, 2> left, right;  // [rows, m], [rows, n]
  fanout::View<double, 2> sum;                // [m, n]

  FANOUT_HOST_DEVICE void operator()(std::size_t element) const {
    const std::size_t i = element / sum.extent(1), k = element % sum.extent(1);
    double total = 0;
    for (std::size_t row = 0; row < left.extent(0); ++row) total += left(row, i) * right(row, k);
    sum(i, k) = total;
  }
};

/// The same for the sum of all rows.
template <class T>
struct SumOfRows {
  fanout::View<const T, 2> rows;
  fanout::View<T, 1> sum;

  FANOUT_HOST_DEVICE void operator()(std::size_t k) const {
    T total = 0;
    for (std::size_t row = 0; row < rows.extent(0); ++row) total += rows(row, k);
    sum[k] = total;
  }
};

/// The sum of all rows, in memory of the device that lives until the results are gathered.
template <class T>
fanout::View<T, 1> sum_of_rows(fanout::Context auto& ctx, fanout::View<T, 2> rows) {
  const auto sum = fanout::empty<T>(ctx, rows.extent(1));
  fanout::launch(ctx, sum.size(), SumOfRows<T>{rows, sum});
  return sum;
}

/// The square root of the sum of the squares.
inline double norm(std::span<const double> x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

/// A weight matrix to begin with: sin(salt + i) / sqrt(columns) at the i-th element, by rows.
inline fanout::Tensor<double, 2> sine_weights(std::size_t rows, std::size_t columns, double salt) {
  fanout::Tensor<double, 2> weights(rows, columns);
  const double scale = std::sqrt(static_cast<double>(columns));
  for (double i = 0; double& weight : weights) weight = std::sin(salt + i++) / scale;
  return weights;
}

}  // namespace examples
