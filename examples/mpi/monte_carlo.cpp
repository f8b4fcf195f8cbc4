// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prices two call options on a stock by simulation, on the devices of all ranks. Each path has random numbers of its
// own, so each payoff is bitwise the same on any number of ranks and devices. The prices are the same up to rounding.
//
//     bash examples/mpi/run 3 monte_carlo --devices 2

#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <fanout/mpi.hpp>

#include "../support/arguments.hpp"

using namespace fanout::literals;

constexpr double spot = 100, strike = 105, rate = 0.03, volatility = 0.2;  // for one year

// [model]
/// Means over paths.
struct Moments {
  double payoff = 0;
  double square = 0;
};

/// A path is a row. The European option pays on the last price, the Asian one on the mean of the monthly prices.
struct Simulation {
  auto forward(fanout::Context auto& ctx, fanout::RowRange paths) const {
    const double drift = (rate - volatility * volatility / 2) / 12, deviation = volatility / std::sqrt(12.0);
    Moments european, asian;
    std::uint64_t bits = 0;  // of all payoffs: changes if one bit does
    const auto add = [&](double gain, Moments& to, std::size_t number) {
      const double payoff = std::exp(-rate) * std::max(gain, 0.0);
      to.payoff += payoff / static_cast<double>(paths.size());
      to.square += payoff * payoff / static_cast<double>(paths.size());
      bits += (2 * number + 1) * std::bit_cast<std::uint64_t>(payoff);
    };
    for (const auto [local, global] : paths.enumerate()) {
      auto random = ctx.random(local);
      double price = spot, mean = 0;
      for (int month = 0; month < 12; ++month) {
        price *= std::exp(drift + deviation * random.normal());
        mean += price / 12;
      }
      add(price - strike, european, 2 * global);
      add(mean - strike, asian, 2 * global + 1);
    }
    return fanout::dict("european"_k = fanout::pmean(european), "asian"_k = fanout::pmean(asian),
                        "bits"_k = fanout::psum(bits));
  }
};
// [/model]

/// The price of the European option, by the formula of Black and Scholes (1973).
double closed_form() {
  const auto normal_distribution = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  const double discounted = strike * std::exp(-rate), d1 = std::log(spot / discounted) / volatility + volatility / 2;
  return spot * normal_distribution(d1) - discounted * normal_distribution(d1 - volatility);
}

int main(int argc, char** argv) {
  std::size_t devices = 1, paths = 200'000;
  examples::Arguments arguments{"Prices options by simulation, on the devices of all ranks."};
  arguments.add("devices", devices, {1, 4096}, "host devices of each rank");
  arguments.add("paths", paths, {2}, "simulated paths");
  arguments.parse(argc, argv);

  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  {
    // [use]
    const fanout::mpi::Ranks ranks{MPI_COMM_WORLD};
    const fanout::ParallelModel model{
        Simulation{}, ranks.devices<fanout::HostDevice>(devices), {.seed = 7, .ranks = ranks}};
    const auto result = model(fanout::Range{ranks.rows(paths).size()});  // means over the paths of all ranks
    // [/use]

    const auto print = [&](const char* option, const Moments& mean) {
      const double variance = mean.square - mean.payoff * mean.payoff;
      std::printf("%-14s %.9f +- %.6f\n", option, mean.payoff, std::sqrt(variance / static_cast<double>(paths - 1)));
    };
    if (ranks.rank() == 0) {
      print("European call", result["european"_k]);
      std::printf("%-14s %.9f\n", "by formula", closed_form());
      print("Asian call", result["asian"_k]);
      std::printf("%-14s %016llx\n", "all payoffs", static_cast<unsigned long long>(result["bits"_k]));
    }
  }
  MPI_Finalize();
}
