// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

#include <fanout/stages.hpp>

#include "digits_network.hpp"
#include "linear.hpp"

namespace examples {

// The two layers of Network as stages. What goes back has the gradient of each row's loss. The gradients of weights are
// means over the rows of a shard.

/// The means over rows of left[row, i] * right[row, k], and of left[row, i].
inline std::pair<Matrix, Vector> gradients_of(fanout::View<const double, 2> left, fanout::View<const double, 2> right) {
  Matrix weights(left.extent(1), right.extent(1));
  Vector bias(left.extent(1));
  const SumOfProducts products{left, right, weights};
  for (std::size_t i = 0; i < weights.size(); ++i) products(i);
  const SumOfRows<double> sums{left, bias};
  for (std::size_t i = 0; i < bias.size(); ++i) sums(i);
  const auto rows = static_cast<double>(left.extent(0));
  for (double& gradient : weights) gradient /= rows;
  for (double& gradient : bias) gradient /= rows;
  return {std::move(weights), std::move(bias)};
}

struct HiddenLayer {
  Matrix w;  // [hidden, pixels]
  Vector b;  // [hidden]

  auto forward(fanout::Context auto& ctx, fanout::View<const double, 2> x) const {
    auto h = fanout::output<double>(ctx, b.size());
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      for (std::size_t j = 0; j < b.size(); ++j) h(row, j) = std::tanh(b[j] + dot(w.row(j), x.row(row)));
    }
    return fanout::saved(h, std::tuple{x, h});
  }

  auto backward(const auto& state, fanout::View<const double, 2> dh) const {
    const auto& [x, h] = state;
    Matrix behind_tanh(dh.extents());
    for (std::size_t i = 0; i < dh.size(); ++i) {
      behind_tanh.data()[i] = dh.data()[i] * (1 - h.data()[i] * h.data()[i]);
    }
    return std::pair{0, fanout::pmean(gradients_of(behind_tanh, x))};  // nobody wants the gradient of the pixels
  }
};

struct OutputLayer {
  Matrix w;  // [digits, hidden]
  Vector b;  // [digits]

  auto forward(fanout::Context auto& ctx, fanout::View<const double, 2> h) const {
    auto z = fanout::output<double>(ctx, b.size());
    for (std::size_t row = 0; row < h.extent(0); ++row) {
      for (std::size_t k = 0; k < b.size(); ++k) z(row, k) = b[k] + dot(w.row(k), h.row(row));
    }
    return fanout::saved(z, h);
  }

  auto backward(fanout::Context auto& ctx, const auto& h, fanout::View<const double, 2> dz) const {
    auto dh = fanout::output<double>(ctx, w.extent(1));
    for (std::size_t row = 0; row < dz.extent(0); ++row) {
      for (std::size_t j = 0; j < w.extent(1); ++j) {
        dh(row, j) = 0;
        for (std::size_t k = 0; k < dz.extent(1); ++k) dh(row, j) += dz(row, k) * w(k, j);
      }
    }
    return std::pair{dh, fanout::pmean(gradients_of(dz, h))};
  }
};

/// The cross-entropy of the softmax of z: the mean of all rows, and the gradient of each.
struct CrossEntropy {
  auto operator()(fanout::View<const double, 2> z, fanout::View<const int, 1> labels) const {
    Matrix dz(z.extents());
    double loss = 0;
    const auto rows = static_cast<double>(z.extent(0));
    for (std::size_t row = 0; row < z.extent(0); ++row) {
      const auto label = static_cast<std::size_t>(labels[row]);
      const double log_sum = log_sum_exp(z.row(row));
      loss += (log_sum - z(row, label)) / rows;
      for (std::size_t k = 0; k < z.extent(1); ++k) {
        dz(row, k) = std::exp(z(row, k) - log_sum) - (k == label ? 1 : 0);
      }
    }
    return std::pair{fanout::pmean(loss), std::move(dz)};
  }
};

}  // namespace examples
