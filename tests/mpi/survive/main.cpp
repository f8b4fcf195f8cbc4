// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Trains a line on all ranks, some of which kill themselves. The others must learn the weights that one process learns.
// tests/mpi/survive/run starts it under an MPI with ULFM. Arguments: where a rank dies (step, forward, reduction,
// gather, collective, collectives), the deadline of calls in ms or 0, and the ranks that die. In the last two places,
// `forward` has collectives: of one shard on each rank, or of two.

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/mpi.hpp>

namespace {

using fanout::Tensor;
using fanout::View;
using fanout::mpi::Ranks;
using Clock = std::chrono::steady_clock;

constexpr std::size_t steps = 60;
constexpr std::size_t columns = 5;
constexpr std::size_t rows = 103;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Where this rank of MPI_COMM_WORLD dies.
struct Death {
  std::string_view where = "nowhere";
  std::uint64_t step = steps;

  void here(std::string_view place, std::uint64_t at) const {
    if (place == where && at == step) std::raise(SIGKILL);
  }
};
Death death;  // NOLINT(*-avoid-non-const-global-variables): read by forward

/// The sum over these rows, divided by `n`.
Tensor<double, 1> gradient_of(View<const double, 1> weights, View<const double, 2> x, View<const double, 1> y,
                              std::size_t n) {
  Tensor<double, 1> gradient(columns);
  for (std::size_t i = 0; i < y.size(); ++i) {
    double error = -y(i);
    for (std::size_t k = 0; k < columns; ++k) error += weights(k) * x(i, k);
    for (std::size_t k = 0; k < columns; ++k) gradient(k) += error * x(i, k) / static_cast<double>(n);
  }
  return gradient;
}

struct Line {
  Tensor<double, 1> weights{columns};
  std::uint64_t step = 0;  // part of the model, so that broadcast_from() makes it the same on all ranks

  auto forward(View<const double, 2> x, View<const double, 1> y, std::size_t padding) const {
    death.here("forward", step);
    return std::tuple{fanout::pmean(gradient_of(weights, x, y, y.size())), fanout::psum(Tensor<float, 1>(padding))};
  }
};

/// The same by collectives between the shards of all ranks. The others are in the second one when a rank dies.
struct MeetingLine {
  Tensor<double, 1> weights{columns};
  std::uint64_t step = 0;

  auto forward(fanout::Context auto& ctx, View<const double, 2> x, View<const double, 1> y, std::size_t padding) const {
    Tensor<double, 1> gradient = gradient_of(weights, x, y, rows);
    Tensor<float, 1> zeros(padding);
    auto ranks = ctx.communicator();
    ranks.all_reduce(gradient);
    if (death.where.starts_with("collective") && death.step == step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      std::raise(SIGKILL);
    }
    ranks.all_reduce(zeros);
    return std::tuple{fanout::first(std::move(gradient)), fanout::psum(static_cast<double>(zeros.size()))};
  }
};

struct Batch {
  Tensor<double, 2> x{rows, columns};
  Tensor<double, 1> y{rows};

  Batch() {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < columns; ++k) {
        x(i, k) = std::sin(static_cast<double>(i * (k + 1)));
        y(i) += x(i, k) * static_cast<double>(k);
      }
    }
  }
};

struct Setting {
  Batch batch;
  std::chrono::milliseconds deadline;  // of a call, or 0
  std::size_t padding;                 // elements that are reduced besides
  std::size_t devices = 2;
};

fanout::Options options(const Ranks& ranks, const Setting& setting) {
  fanout::Options options{.ranks = ranks};
  if (setting.deadline.count() != 0) options.deadline = setting.deadline;
  return options;
}

/// Makes one step. Dies if it is to.
template <class Model>
void make_step(Model& model, const Ranks& ranks, const Setting& setting) {
  const std::uint64_t step = model.model().step;
  const fanout::RowRange mine = ranks.rows(rows);
  death.here("step", step);
  if (death.where == "reduction" && death.step == step) {  // with luck in the middle of it
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      std::raise(SIGKILL);
    }).detach();
  }
  const auto [gradient, zeros] =
      model(setting.batch.x.rows({mine.first, mine.last}), setting.batch.y.rows({mine.first, mine.last}),
            step < steps / 2 ? setting.padding : std::size_t{0});
  model.update([&, &change = gradient](auto& original) {
    for (std::size_t k = 0; k < columns; ++k) original.weights(k) -= 0.5 * change(k);
    ++original.step;
  });
  death.here("gather", step);
  static_cast<void>(ranks.gather(model.model().weights, 0));
}

/// This rank has just lost others. Says so, and checks that it was soon, and that the ranks stay of no use.
void note_loss(const Ranks& ranks, const fanout::mpi::RankLost& error, Clock::time_point last) {
  const double waited = seconds_since(last);
  std::printf("rank %zu after %.3f s: %s\n", ranks.rank(), waited, error.what());
  if (waited > 5) throw fanout::Error("that was late");
  if (error.ranks().empty()) throw fanout::Error("it is not known which rank was lost");
  try {
    static_cast<void>(ranks.gather(1, 0));
  } catch (const fanout::mpi::RankLost&) {
    return;
  }
  throw fanout::Error("ranks of which one was lost are still in use");
}

// [survive]
/// Trains until the last step, however many ranks are lost meanwhile.
template <class Model>
Model train(const Ranks& ranks, Model line, const Setting& setting) {
  fanout::ParallelModel model{std::move(line), ranks.devices<fanout::HostDevice>(setting.devices),
                              options(ranks, setting)};
  Clock::time_point last = Clock::now();
  try {
    model.broadcast_from(0);  // the weights, and the number of steps
    for (; model.model().step < steps; last = Clock::now()) make_step(model, ranks, setting);
    std::printf("survived: %zu ranks left\n", ranks.size());
    return model.model();
  } catch (const fanout::mpi::RankLost& error) {
    note_loss(ranks, error, last);
  }
  const Ranks left = ranks.shrink();
  return train(left, model.model(), setting);
}
// [/survive]

/// Returns 0 if the weights are right.
int run(int argc, char** argv) {
  const Ranks ranks{MPI_COMM_WORLD, {.survive = true}};
  for (int i = 3; i < argc; ++i) {
    if (ranks.rank() == std::stoul(argv[i])) death = {.where = argv[1], .step = 5 + 10 * static_cast<unsigned>(i - 3)};
  }
  const Setting setting{.batch = {},
                        .deadline = std::chrono::milliseconds(std::atol(argv[2])),
                        .padding = std::string_view(argv[1]) == "reduction" ? std::size_t{4'000'000} : 1000,
                        .devices = std::string_view(argv[1]) == "collective" ? std::size_t{1} : 2};
  const bool meets = std::string_view(argv[1]).starts_with("collective");
  const Tensor<double, 1> weights =
      meets ? train(ranks, MeetingLine{}, setting).weights : train(ranks, Line{}, setting).weights;

  Line alone;
  for (; alone.step < steps; ++alone.step) {
    const fanout::ParallelModel model{alone, fanout::host_devices(1)};
    const auto [gradient, zeros] = model(setting.batch.x, setting.batch.y, std::size_t{0});
    for (std::size_t k = 0; k < columns; ++k) alone.weights(k) -= 0.5 * gradient(k);
  }
  for (std::size_t k = 0; k < columns; ++k) {
    if (!(std::abs(weights(k) - alone.weights(k)) < 1e-12)) return 2;
  }
  std::puts("the weights are right");
  std::fflush(stdout);
  if (argc > 3) std::_Exit(0);  // MPI_Finalize() of Open MPI 5.0.11 may not return after a loss
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  const bool threads_meet = argc > 1 && std::string_view(argv[1]) == "collectives";
  MPI_Init_thread(&argc, &argv, threads_meet ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED, &level);
  int status = 1;
  try {
    status = run(argc, argv);
  } catch (const fanout::Error& error) {
    std::puts(error.what());
  }
  MPI_Finalize();
  return status;
}
