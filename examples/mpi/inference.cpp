// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scores a batch on all ranks of an MPI program: rank 0 has the batch, and gets the scores.
//
//     bash examples/mpi/run

// [program]
#include <mpi.h>

#include <cmath>
#include <cstddef>
#include <cstdio>

#include <fanout/mpi.hpp>

struct Network {
  fanout::Tensor<float, 1> weights{64};

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> images) const {
    auto scores = fanout::output<float>(ctx);
    for (std::size_t row = 0; row < images.extent(0); ++row) {
      float sum = 0;
      for (std::size_t k = 0; k < weights.size(); ++k) sum += weights(k) * images(row, k);
      scores(row) = std::tanh(sum);
    }
    return scores;
  }
};

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  {
    const fanout::mpi::Ranks ranks{MPI_COMM_WORLD};
    const bool is_root = ranks.rank() == 0;

    Network network;
    fanout::Tensor<float, 2> images(is_root ? 1000 : 0, 64);  // only rank 0 has images
    for (std::size_t k = 0; k < network.weights.size(); ++k) network.weights(k) = 0.001F * static_cast<float>(k);
    for (std::size_t row = 0; row < images.extent(0); ++row) {
      for (std::size_t k = 0; k < 64; ++k) images(row, k) = static_cast<float>((row * k) % 7) / 7;
    }

    const fanout::ParallelModel model{network, ranks.devices<fanout::HostDevice>()};
    const auto mine = ranks.scatter(images, 0);
    const auto scores = ranks.gather(model(mine), 0);

    if (scores) std::printf("%zu scores, the last one is %.6f\n", scores->size(), (*scores)(scores->size() - 1));
  }
  MPI_Finalize();
}
// [/program]
