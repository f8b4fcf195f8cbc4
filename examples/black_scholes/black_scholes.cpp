// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prices options with Thrust and with a simulation, on all devices: cores if any C++20 compiler makes it, GPUs if nvcc
// does.
//
//     g++  -std=c++20 -I include -I path/to/cuda/include/cccl examples/black_scholes/black_scholes.cpp -pthread
//     nvcc -std=c++20 -I include -x cu examples/black_scholes/black_scholes.cpp

#include "pricer.hpp"

#include <array>
#include <cstdio>

int main() {
  if (PricingDevice::visible().empty()) {
    std::printf("skipped: no CUDA device\n");
    return 77;  // CTest knows it
  }

  constexpr std::array<double, 6> spot{100, 42, 60, 100, 100, 100};
  constexpr std::array<double, 6> strike{100, 40, 65, 80, 120, 100};
  constexpr std::array<double, 6> rate{0.05, 0.10, 0.08, 0.05, 0.05, 0};
  constexpr std::array<double, 6> volatility{0.2, 0.2, 0.3, 0.2, 0.2, 0.4};
  constexpr std::array<double, 6> years{1, 0.5, 0.25, 1, 2, 0.5};

  // [use]
  const Contracts contracts{spot, strike, rate, volatility, years};
  const fanout::ParallelModel formula{BlackScholes{}, fanout::AllVisible<PricingDevice>{}};
  const fanout::ParallelModel simulation{MonteCarlo{.paths = 100'000}, fanout::AllVisible<PricingDevice>{}};
  const fanout::Tensor<Price, 1> prices = fanout::to_host(formula(contracts));
  const fanout::Tensor<Estimate, 1> estimates = fanout::to_host(simulation(contracts));
  // [/use]

  std::printf("spot  strike  rate  volatility  years       call        put  simulated call\n");
  for (std::size_t i = 0; i < spot.size(); ++i) {
    std::printf("%4.0f  %6.0f  %4.2f  %10.2f  %5.2f  %9.6f  %9.6f  %6.2f +- %.2f\n", spot[i], strike[i], rate[i],
                volatility[i], years[i], prices[i].call, prices[i].put, estimates[i].call, estimates[i].error);
  }
}
