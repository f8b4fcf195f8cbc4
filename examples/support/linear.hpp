// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>

#include <fanout/memory/tensor.hpp>
#include <fanout/memory/view.hpp>

namespace examples {

// Plain loops over rows, which lie contiguously. The sizes of what is combined agree.

inline double dot(fanout::View<const double, 1> a, fanout::View<const double, 1> b) {
  assert(a.size() == b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// to += factor * from
inline void add_scaled(fanout::View<double, 1> to, double factor, fanout::View<const double, 1> from) {
  assert(to.size() == from.size());
  for (double* t = to.begin(); const double x : from) *t++ += factor * x;
}

/// log(exp(x[0]) + exp(x[1]) + ...), without overflow: the largest is taken out of the sum. x is not empty.
inline double log_sum_exp(fanout::View<const double, 1> x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double value : x) sum += std::exp(value - largest);
  return largest + std::log(sum);
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
