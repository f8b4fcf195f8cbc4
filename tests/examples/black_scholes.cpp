// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The models of examples/black_scholes, on cores: the formula against prices that others computed, the simulation
// against the formula.
#include "black_scholes/pricer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace {

/// Contracts of all kinds, none so hopeless that a simulation finds no path that pays.
struct Batch {
  std::vector<double> spot, strike, rate, volatility, years;

  explicit Batch(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      spot.push_back(80 + static_cast<double>(i % 11) * 4);
      strike.push_back(85 + static_cast<double>(i % 7) * 5);
      rate.push_back(0.01 * static_cast<double>(i % 5));
      volatility.push_back(0.2 + 0.05 * static_cast<double>(i % 6));
      years.push_back(0.25 * static_cast<double>(2 + i % 8));
    }
  }
  Contracts contracts() const { return {spot, strike, rate, volatility, years}; }
};

}  // namespace

TEST_CASE("the formula gives the prices of the textbooks") {
  // J. C. Hull, "Options, Futures, and Other Derivatives", example of the formula: 4.76 and 0.81; the others are quoted
  // all over the literature. All to 1e-6, computed apart from this in Python.
  const std::vector<double> spot{100, 42, 60}, strike{100, 40, 65}, rate{0.05, 0.1, 0.08}, volatility{0.2, 0.2, 0.3},
      years{1, 0.5, 0.25};
  const std::vector<double> call{10.450584, 4.759422, 2.133368}, put{5.573526, 0.808599, 5.846282};
  for (const int devices : {1, 2, 3}) {
    const fanout::ParallelModel model{BlackScholes{}, fanout::host_devices(devices)};
    const auto prices = model(Contracts{spot, strike, rate, volatility, years});
    REQUIRE(prices.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(std::abs(prices[i].call - call[i]) < 1e-6);
      CHECK(std::abs(prices[i].put - put[i]) < 1e-6);
    }
  }
}

TEST_CASE("a call and a put differ by the stock less the discounted strike") {
  const Batch batch(1000);
  const fanout::ParallelModel model{BlackScholes{}, fanout::host_devices(3)};
  const auto prices = model(batch.contracts());
  REQUIRE(prices.size() == 1000);
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const double discounted = batch.strike[i] * std::exp(-batch.rate[i] * batch.years[i]);
    CHECK(std::abs(prices[i].call - prices[i].put - (batch.spot[i] - discounted)) < 1e-10);
    CHECK(prices[i].call >= 0);
    CHECK(prices[i].put >= 0);
  }
}

TEST_CASE("the simulation agrees with the formula, and with itself on any number of devices") {
  const Batch batch(40);
  const auto prices = fanout::ParallelModel{BlackScholes{}, fanout::host_devices(1)}(batch.contracts());
  const auto alone = fanout::ParallelModel{MonteCarlo{.paths = 4000}, fanout::host_devices(1)}(batch.contracts());
  const auto shared = fanout::ParallelModel{MonteCarlo{.paths = 4000}, fanout::host_devices(3)}(batch.contracts());
  REQUIRE(alone.size() == 40);
  double squares = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(shared[i].call == alone[i].call);
    CHECK(shared[i].error == alone[i].error);
    const double off = prices[i].call - alone[i].call;
    CHECK(std::abs(off) <= 4 * alone[i].error);
    squares += off * off / (alone[i].error * alone[i].error);
  }
  CHECK(squares < 80);  // about 40 if the errors are what they say
  CHECK(squares > 15);
}
