// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <tuple>

#include <fanout/fanout.hpp>

#include "digits_data.hpp"
#include "linear.hpp"

namespace examples {

using Vector = fanout::Tensor<double, 1>;
using Matrix = fanout::Tensor<double, 2>;

/// One row through the network and back: its loss, and the loss's gradient before each layer's function.
struct OneRow {
  fanout::View<const double, 2> x;  // [rows, pixels], and what each row is
  const int* labels;
  fanout::View<const double, 2> w1, w2;
  fanout::View<const double, 1> b1, b2;
  fanout::View<double, 2> h, dh, dz;  // [rows, hidden], [rows, hidden], [rows, digits]
  fanout::View<double, 2> loss;       // [rows, 1]
  fanout::View<int, 2> correct;       // [rows, 1]

  FANOUT_HOST_DEVICE void operator()(std::size_t row) const {
    const auto z = dz.row(row);  // the same memory: each becomes its gradient
    const auto label = static_cast<std::size_t>(labels[row]);
    for (std::size_t j = 0; j < b1.size(); ++j) h(row, j) = std::tanh(b1[j] + dot(w1.row(j), x.row(row)));
    for (std::size_t k = 0; k < z.size(); ++k) z[k] = b2[k] + dot(w2.row(k), h.row(row));
    const double log_sum = log_sum_exp(z);
    const auto rows = static_cast<double>(x.extent(0));
    loss(row, 0) = (log_sum - z[label]) / rows;
    correct(row, 0) = index_of_largest(z) == label ? 1 : 0;

    for (std::size_t k = 0; k < z.size(); ++k) z[k] = (std::exp(z[k] - log_sum) - (k == label ? 1 : 0)) / rows;
    for (std::size_t j = 0; j < b1.size(); ++j) {
      double behind_tanh = 0;
      for (std::size_t k = 0; k < z.size(); ++k) behind_tanh += z[k] * w2(k, j);
      dh(row, j) = behind_tanh * (1 - h(row, j) * h(row, j));
    }
  }
};

/// Two layers with tanh between them, trained on the cross-entropy of the second's softmax.
struct Network {
  Matrix w1;  // [hidden, pixels]
  Vector b1;  // [hidden]
  Matrix w2;  // [digits, hidden]
  Vector b2;  // [digits]

  static Network zeros(std::size_t hidden) {
    return {Matrix(hidden, Digits::pixel_count), Vector(hidden), Matrix(Digits::kinds, hidden), Vector(Digits::kinds)};
  }

  /// Loss, number of right answers and gradients of the rows that this device got. Losses and gradients are means.
  auto on_rows(fanout::Context auto& ctx, fanout::View<const double, 2> pixels, std::span<const int> labels) const {
    const std::size_t rows = pixels.extent(0), hidden = b1.size();
    auto h = fanout::empty<double>(ctx, rows, hidden), dh = fanout::empty<double>(ctx, rows, hidden);
    auto dz = fanout::empty<double>(ctx, rows, Digits::kinds), losses = fanout::empty<double>(ctx, rows, 1);
    auto hits = fanout::empty<int>(ctx, rows, 1);
    fanout::launch(ctx, rows, OneRow{pixels, labels.data(), w1, w2, b1, b2, h, dh, dz, losses, hits});

    auto g1 = fanout::empty<double>(ctx, hidden, Digits::pixel_count);
    auto g2 = fanout::empty<double>(ctx, Digits::kinds, hidden);
    fanout::launch(ctx, g1.size(), SumOfProducts{dh, pixels, g1});
    fanout::launch(ctx, g2.size(), SumOfProducts{dz, h, g2});
    std::tuple gradients{g1, sum_of_rows(ctx, dh), g2, sum_of_rows(ctx, dz)};
    return std::tuple{sum_of_rows(ctx, losses), sum_of_rows(ctx, hits), gradients};
  }

  /// The same, combined over all devices.
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 2> pixels, std::span<const int> labels) const {
    using namespace fanout::literals;
    auto [loss, correct, gradients] = on_rows(ctx, pixels, labels);
    return fanout::dict("loss"_k = fanout::pmean(loss), "correct"_k = fanout::psum(correct),
                        "gradients"_k = fanout::pmean(gradients));
  }
};

/// Gradient descent with momentum, as PyTorch's SGD does it: v = momentum * v + g, p -= rate * v.
struct Descent {
  double rate, momentum;
  Network velocity;

  void step(Network& network, const auto& gradients) {
    const auto& [w1, b1, w2, b2] = gradients;
    apply(network.w1, velocity.w1, w1);
    apply(network.b1, velocity.b1, b1);
    apply(network.w2, velocity.w2, w2);
    apply(network.b2, velocity.b2, b2);
  }
  void apply(auto& parameters, auto& velocities, const auto& gradients) const {
    for (auto p = parameters.begin(), v = velocities.begin(); const double g : gradients) {
      *v = momentum * *v + g;
      *p++ -= rate * *v++;
    }
  }
};

/// What launch() does for each number: the same step.
struct StepOfOne {
  double rate, momentum;
  fanout::View<double, 1> parameters, velocities;
  fanout::View<const double, 1> gradients;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const {
    velocities[i] = momentum * velocities[i] + gradients[i];
    parameters[i] -= rate * velocities[i];
  }
};

/// A network of which each device trains its own copy. After each call, all copies are the mean of theirs, weighted by
/// rows. A step is linear in the gradients, so that is the step by the mean gradients, up to rounding.
struct TrainsItself {
  double rate, momentum;
  fanout::Mean<Network> network, velocity;

  auto forward(fanout::Context auto& ctx, fanout::View<const double, 2> pixels, std::span<const int> labels) {
    using namespace fanout::literals;
    auto [loss, correct, gradients] = network.value.on_rows(ctx, pixels, labels);
    const auto& [g1, h1, g2, h2] = gradients;
    auto& [w1, b1, w2, b2] = network.value;
    auto& [v1, u1, v2, u2] = velocity.value;
    step(ctx, w1, v1, g1), step(ctx, b1, u1, h1), step(ctx, w2, v2, g2), step(ctx, b2, u2, h2);
    return fanout::dict("loss"_k = fanout::pmean(loss), "correct"_k = fanout::psum(correct));
  }
  void step(fanout::Context auto& ctx, auto& parameters, auto& velocities, const auto& gradients) const {
    const auto flat = [](auto& x) { return x.view().reshape({x.size()}); };
    fanout::launch(
        ctx, parameters.size(),
        StepOfOne{rate, momentum, flat(parameters), flat(velocities), gradients.reshape({gradients.size()})});
  }
};

}  // namespace examples
