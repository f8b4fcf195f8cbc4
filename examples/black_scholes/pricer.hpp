// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Prices of European options on stocks without dividends, by the formula of Black and Scholes (1973) and by simulation.
// The same source for cores and for GPUs: any C++20 compiler makes the one, nvcc the other.

#include <cmath>
#include <cstddef>
#include <fanout/fanout.hpp>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/transform.h>

// [devices]
#if defined(__CUDACC__)
#include <fanout/adapt/thrust.cuh>
#include <fanout/cuda.hpp>
#include <fanout/cuda/launch.cuh>
using PricingDevice = fanout::CudaDevice;
#else
#include <fanout/adapt/thrust.hpp>
using PricingDevice = fanout::HostDevice;
#endif
// [/devices]

// [contracts]
/// One option per row, as a struct of arrays. fanout splits it by rows.
struct Contracts {
  fanout::View<const double, 1> spot;  // what the stock costs today
  fanout::View<const double, 1> strike;
  fanout::View<const double, 1> rate;        // of interest, per year
  fanout::View<const double, 1> volatility;  // per square root of a year
  fanout::View<const double, 1> years;       // until the option ends
};

struct Price {
  double call;
  double put;
};
// [/contracts]

/// The formula, for one of the contracts.
struct ClosedForm {
  Contracts contracts;

  FANOUT_HOST_DEVICE static double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

  FANOUT_HOST_DEVICE Price operator()(std::size_t i) const {
    const double spot = contracts.spot[i];
    const double volatility = contracts.volatility[i];
    const double years = contracts.years[i];
    const double deviation = volatility * std::sqrt(years);
    const double discounted = contracts.strike[i] * std::exp(-contracts.rate[i] * years);
    const double d1 = std::log(spot / discounted) / deviation + deviation / 2;
    const double d2 = d1 - deviation;
    return {.call = spot * normal_distribution(d1) - discounted * normal_distribution(d2),
            .put = discounted * normal_distribution(-d2) - spot * normal_distribution(-d1)};
  }
};

// [thrust]
struct BlackScholes {
  auto forward(fanout::Context auto& ctx, const Contracts& contracts) const {
    auto prices = fanout::output<Price>(ctx);
    const thrust::counting_iterator<std::size_t> first(0);
    thrust::transform(fanout::thrust_policy(ctx), first, first + static_cast<std::ptrdiff_t>(prices.size()),
                      prices.data(), ClosedForm{contracts});
    return prices;
  }
};
// [/thrust]

/// What a simulation found: a mean over paths, and its standard error.
struct Estimate {
  double call;
  double error;
};

// [launch]
/// Simulates the stock of one of the contracts, many times.
struct Simulation {
  Contracts contracts;
  fanout::View<Estimate, 1> estimates;
  fanout::RandomStream random_of_first;
  std::size_t paths;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const {
    fanout::RandomStream random = random_of_first.after(i);  // the same on any number of devices
    const double deviation = contracts.volatility[i] * std::sqrt(contracts.years[i]);
    const double discount = std::exp(-contracts.rate[i] * contracts.years[i]);
    const double forward = contracts.spot[i] / discount;
    double sum = 0;
    double squares = 0;
    for (std::size_t path = 0; path < paths; ++path) {
      const double spot = forward * std::exp(deviation * random.normal() - deviation * deviation / 2);
      const double value = spot > contracts.strike[i] ? discount * (spot - contracts.strike[i]) : 0;
      sum += value;
      squares += value * value;
    }
    const double n = static_cast<double>(paths);
    estimates[i] = {.call = sum / n, .error = std::sqrt((squares - sum * sum / n) / (n - 1) / n)};
  }
};

struct MonteCarlo {
  std::size_t paths;

  auto forward(fanout::Context auto& ctx, const Contracts& contracts) const {
    auto estimates = fanout::output<Estimate>(ctx);
    fanout::launch(ctx, estimates.size(), Simulation{contracts, estimates, ctx.random(0), paths});
    return estimates;
  }
};
// [/launch]
