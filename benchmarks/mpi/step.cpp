// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// step STEPS: trains the network of examples/digits.cpp on one device of each rank. Prints the steps per second and the
// loss of the last step. step_of_ddp.py does the same by PyTorch.

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include <fanout/mpi.hpp>

#include "../../examples/support/digits_data.hpp"
#include "../../examples/support/digits_network.hpp"
#include "../../examples/support/linear.hpp"

using namespace fanout::literals;
using examples::Descent, examples::Digits, examples::Network;

namespace {

void train(long steps) {
  const fanout::mpi::Ranks ranks{MPI_COMM_WORLD};
  const Digits digits = examples::read_digits("examples/data/digits.csv");
  Network network = Network::zeros(32);
  network.w1 = examples::sine_weights(32, Digits::pixel_count, 1);
  network.w2 = examples::sine_weights(Digits::kinds, 32, 2);
  Descent descent{0.5, 0, Network::zeros(32)};
  fanout::ParallelModel model{std::move(network), fanout::host_devices(1), {.ranks = ranks}};

  double loss = 0, begin = 0;
  std::size_t row = 0;
  constexpr long untimed = 60;  // what is made at first use
  for (long step = -untimed; step < steps; ++step) {
    if (step == 0) begin = MPI_Wtime();
    const std::size_t rows = std::min<std::size_t>(128, digits.train_rows() - row);
    const fanout::RowRange mine = ranks.rows(rows);
    const auto result = model(digits.pixels.rows({row + mine.first, row + mine.last}),
                              std::span<const int>(digits.labels).subspan(row + mine.first, mine.size()));
    model.update([&](Network& original) { descent.step(original, result["gradients"_k]); });
    loss = result["loss"_k][0];
    row = row + rows < digits.train_rows() ? row + rows : 0;
  }
  const double seconds = MPI_Wtime() - begin;
  if (ranks.rank() == 0) std::printf("%.1f %.12f\n", static_cast<double>(steps) / seconds, loss);
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  train(argc > 1 ? std::atol(argv[1]) : 1200);
  MPI_Finalize();
}
