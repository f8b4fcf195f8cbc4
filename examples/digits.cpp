// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trains a small network on handwritten digits, data-parallel: every device computes the gradients on its rows of the
// batch, pmean() makes them those of the whole batch, update() applies them. The result is the same on any number of
// devices, up to rounding, and of any kind: what forward() does is done by launch(), on cores in loops, on GPUs in
// kernels.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <fanout/fanout.hpp>
#include <fanout/observe.hpp>

#include "support/arguments.hpp"
#include "support/digits_data.hpp"
#include "support/digits_network.hpp"
#include "support/linear.hpp"
#include "support/loss_log.hpp"

using namespace fanout::literals;
using examples::Descent, examples::Digits, examples::Network;

int main(int argc, char** argv) try {
  int devices = fanout::host_device_count();
  std::size_t hidden = 32, batch = 128, epochs = 20;
  double rate = 0.5, momentum = 0, salt = 1;
  std::string data = "examples/data/digits.csv", losses, trace;
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
  arguments.add("trace", trace, "file to which a timeline of the first epoch is written");
  arguments.parse(argc, argv);

  const Digits digits = examples::read_digits(data);
  examples::LossLog log(losses);
  Network network = Network::zeros(hidden);
  network.w1 = examples::sine_weights(hidden, Digits::pixel_count, salt);
  network.w2 = examples::sine_weights(Digits::kinds, hidden, salt + 1);
  Descent descent{rate, momentum, Network::zeros(hidden)};
  fanout::ParallelModel model{std::move(network), fanout::host_devices(devices),
                              fanout::Options{.output = fanout::DeviceId{"host"}, .measure = true}};
  const auto run = [&](std::size_t begin, std::size_t end) {
    return model(digits.pixels.rows({begin, end}), std::span<const int>(digits.labels).subspan(begin, end - begin));
  };

  const auto train = [&](std::size_t epoch) {
    double loss = 0;
    for (std::size_t begin = 0, rows = 0; begin < digits.train_rows(); begin += rows) {
      rows = std::min(batch, digits.train_rows() - begin);
      const auto result = run(begin, begin + rows);
      model.update([&](Network& original) { descent.step(original, result["gradients"_k]); });
      log.add(epoch, rows, result["loss"_k][0]);
      loss += result["loss"_k][0] * static_cast<double>(rows) / static_cast<double>(digits.train_rows());
    }
    std::printf("epoch %2zu: loss %.6f\n", epoch, loss);
  };
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    if (epoch == 0 && !trace.empty()) {
      fanout::trace(trace, [&] { train(epoch); });
    } else {
      train(epoch);
    }
  }
  log.close();

  const auto& [w1, b1, w2, b2] = model.model();
  std::printf("accuracy %d of %zu\n", run(digits.train_rows(), digits.rows())["correct"_k][0], Digits::test_rows);
  std::printf("sum of W1 %.12f, norm of W2 %.12f\n", std::accumulate(w1.begin(), w1.end(), 0.0),
              examples::norm(w2.values()));
  std::printf("%s", to_string(model.report()).c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
