// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trains a small network on handwritten digits, data-parallel: every device computes the gradients on its rows of the
// batch, pmean() makes them those of the whole batch, update() applies them. The result is the same on any number of
// devices, up to rounding, and of any kind: what forward() does is done by launch(), on cores in loops, on GPUs in
// kernels.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <fanout/fanout.hpp>

#include "support/arguments.hpp"
#include "support/digits_data.hpp"
#include "support/linear.hpp"
#include "support/loss_log.hpp"
#include "support/work_table.hpp"

using namespace fanout::literals;
using examples::Digits, examples::dot, examples::sum_of_rows, examples::SumOfProducts;
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
    const double log_sum = examples::log_sum_exp(z);
    const auto rows = static_cast<double>(x.extent(0));
    loss(row, 0) = (log_sum - z[label]) / rows;
    correct(row, 0) = examples::index_of_largest(z) == label ? 1 : 0;

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

  /// Loss and gradients, averaged over the rows that this device got.
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 2> pixels, std::span<const int> labels) const {
    const examples::Stopwatch watch;
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
    auto loss = sum_of_rows(ctx, losses);
    auto correct = sum_of_rows(ctx, hits);
    ctx.device().synchronize();  // else the watch tells only how long it took to ask for all this
    return fanout::dict("loss"_k = fanout::pmean(loss), "correct"_k = fanout::psum(correct),
                        "gradients"_k = fanout::pmean(gradients),
                        // What is not reduced comes back as one value for each device that had work.
                        "device"_k = to_string(ctx.device().id()), "rows"_k = rows, "seconds"_k = watch.seconds());
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

int main(int argc, char** argv) try {
  int devices = fanout::host_device_count();
  std::size_t hidden = 32, batch = 128, epochs = 20;
  double rate = 0.5, momentum = 0, salt = 1;
  std::string data = "examples/data/digits.csv", losses;
  examples::Arguments arguments{"Trains a network of two layers on handwritten digits, then tests it on the last 297."};
  arguments.add("devices", devices, {1, 4096}, "host devices");
  arguments.add("data", data, "file with 64 pixels and a label in each line");
  arguments.add("hidden", hidden, {1, 65536}, "width of the hidden layer");
  arguments.add("batch", batch, {1}, "rows of a step");
  arguments.add("epochs", epochs, {1}, "times through the data");
  arguments.add("rate", rate, {0}, "learning rate");
  arguments.add("momentum", momentum, {0}, "how much of a step goes on into the next");
  arguments.add("salt", salt, {-1e9, 1e9}, "chooses the weights to begin with");
  arguments.add("losses", losses, "file to which the loss of every step is written");
  arguments.parse(argc, argv);

  const Digits digits = examples::read_digits(data);
  examples::LossLog log(losses);
  Network network = Network::zeros(hidden);
  network.w1 = examples::sine_weights(hidden, Digits::pixel_count, salt);
  network.w2 = examples::sine_weights(Digits::kinds, hidden, salt + 1);
  Descent descent{rate, momentum, Network::zeros(hidden)};
  fanout::ParallelModel model{std::move(network), fanout::host_devices(devices),
                              fanout::Options{.output = fanout::DeviceId{"host"}}};
  const auto run = [&](std::size_t begin, std::size_t end) {
    return model(digits.pixels.rows({begin, end}), std::span<const int>(digits.labels).subspan(begin, end - begin));
  };

  examples::WorkTable work(model.devices().ids());
  const examples::Stopwatch watch;
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    double loss = 0;
    for (std::size_t begin = 0, rows = 0; begin < digits.train_rows(); begin += rows) {
      rows = std::min(batch, digits.train_rows() - begin);
      const auto result = run(begin, begin + rows);
      model.update([&](Network& original) { descent.step(original, result["gradients"_k]); });
      log.add(epoch, rows, result["loss"_k][0]);
      loss += result["loss"_k][0] * static_cast<double>(rows) / static_cast<double>(digits.train_rows());
      work.add(result["device"_k], result["rows"_k], result["seconds"_k]);
    }
    std::printf("epoch %2zu: loss %.6f\n", epoch, loss);
  }
  const double seconds = watch.seconds();
  log.close();

  const auto& [w1, b1, w2, b2] = model.model();
  std::printf("accuracy %d of %zu\n", run(digits.train_rows(), digits.rows())["correct"_k][0], Digits::test_rows);
  std::printf("sum of W1 %.12f, norm of W2 %.12f\n", std::accumulate(w1.begin(), w1.end(), 0.0),
              examples::norm(w2.values()));
  work.print(seconds);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
