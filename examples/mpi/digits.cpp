// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trains the network of examples/digits.cpp on the devices of all ranks. Each rank has its own rows of every batch.
// pmean() makes its gradients those of the whole batch, so that all ranks take the same step. The losses are those of
// one rank, up to rounding.

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include <fanout/mpi.hpp>

#include "../support/arguments.hpp"
#include "../support/digits_data.hpp"
#include "../support/digits_network.hpp"
#include "../support/linear.hpp"
#include "../support/loss_log.hpp"

using namespace fanout::literals;
using examples::Descent, examples::Digits, examples::Network;

namespace {

void train(int argc, char** argv) {
  std::size_t devices = 1, epochs = 20;
  std::string data = "examples/data/digits.csv", losses;
  examples::Arguments arguments{"Trains a network on handwritten digits, on the devices of all ranks."};
  arguments.add("devices", devices, {1, 4096}, "host devices of each rank");
  arguments.add("data", data, "file with 64 pixels and a label in each line");
  arguments.add("epochs", epochs, {1}, "times through the data");
  arguments.add("losses", losses, "file to which rank 0 writes the loss of every step");
  arguments.parse(argc, argv);

  const fanout::mpi::Ranks ranks{MPI_COMM_WORLD};
  const bool is_root = ranks.rank() == 0;
  const Digits digits = examples::read_digits(data);
  examples::LossLog log(is_root ? losses : "");

  Network network = Network::zeros(32);
  if (is_root) {
    network.w1 = examples::sine_weights(32, Digits::pixel_count, 1);
    network.w2 = examples::sine_weights(Digits::kinds, 32, 2);
  }
  Descent descent{0.5, 0, Network::zeros(32)};
  // [train]
  fanout::ParallelModel model{std::move(network), ranks.devices<fanout::HostDevice>(devices), {.ranks = ranks}};
  model.broadcast_from(0);  // the weights to begin with

  const auto run = [&](std::size_t begin, std::size_t end) {
    const fanout::RowRange mine = ranks.rows(end - begin);
    return model(digits.pixels.rows({begin + mine.first, begin + mine.last}),
                 std::span<const int>(digits.labels).subspan(begin + mine.first, mine.size()));
  };
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t begin = 0, rows = 0; begin < digits.train_rows(); begin += rows) {
      rows = std::min<std::size_t>(128, digits.train_rows() - begin);
      const auto result = run(begin, begin + rows);
      model.update([&](Network& original) { descent.step(original, result["gradients"_k]); });
      log.add(epoch, rows, result["loss"_k][0]);
    }
  }
  // [/train]
  log.close();
  const int correct = run(digits.train_rows(), digits.rows())["correct"_k][0];
  if (is_root) std::printf("accuracy %d of %zu\n", correct, Digits::test_rows);
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  int status = 0;
  try {
    train(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = 2;
  }
  MPI_Finalize();
  return status;
}
