// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An ensemble: three different models forecast tomorrow's temperature in six cities from the last seven days, each on a
// device of its own; the mean of the three is the answer. It is made with scatter, replicate, apply and gather, the
// four functions below ParallelModel.

#include <array>
#include <cstdio>
#include <fanout/fanout.hpp>
#include <numeric>
#include <span>
#include <tuple>

constexpr std::array cities{"Oslo", "Lima", "Cairo", "Delhi", "Perth", "Quito"};
constexpr std::size_t days = 7;

using Week = std::span<const double, days>;   // of one city, today last
using Table = fanout::View<const double, 2>;  // [cities, days]
using Forecast = fanout::Tensor<double, 1>;   // [cities]

template <class Rule>
Forecast for_each_city(Table table, const Rule& rule) {
  Forecast tomorrow(table.extent(0));
  for (std::size_t city = 0; city < tomorrow.size(); ++city) {
    tomorrow[city] = rule(Week(&table(city, 0), days));
  }
  return tomorrow;
}

struct AsToday {
  Forecast forward(Table table) const {
    return for_each_city(table, [](Week week) { return week.back(); });
  }
};

struct AsOnAverage {
  Forecast forward(Table table) const {
    return for_each_city(table, [](Week week) { return std::accumulate(week.begin(), week.end(), 0.0) / days; });
  }
};

struct OnTheTrend {
  double strength;  // how much of today's change comes again

  Forecast forward(Table table) const {
    return for_each_city(table, [this](Week week) {
      const double today = week.back();
      const double yesterday = week[days - 2];
      return today + strength * (today - yesterday);
    });
  }
};

constexpr std::array<double, cities.size() * days> temperatures{
    4,  3,  5,  6,  4,  2,  1,   // Oslo
    19, 20, 20, 19, 21, 21, 22,  // Lima
    28, 30, 31, 31, 33, 30, 29,  // Cairo
    33, 34, 32, 35, 36, 36, 37,  // Delhi
    24, 22, 20, 23, 25, 26, 24,  // Perth
    14, 15, 14, 13, 15, 16, 14,  // Quito
};

int main() {
  const Table week(temperatures.data(), cities.size(), days);
  const auto devices = fanout::host_devices(3);

  // [ensemble]
  // Another model on each device, and the whole week for each. Gathered, their forecasts stand one after the other.
  const std::tuple models{AsToday{}, AsOnAverage{}, OnTheTrend{.strength = 0.5}};
  const auto whole = fanout::scatter(devices, fanout::broadcast(week));
  const auto all = fanout::gather(fanout::apply(models, devices, whole));  // [3 * 6]
  // [/ensemble]

  const fanout::View<const double, 2> forecasts(all.data(), std::tuple_size_v<decltype(models)>, cities.size());
  std::printf("tomorrow  as today  as on average  on the trend  ensemble\n");
  for (std::size_t city = 0; city < cities.size(); ++city) {
    const double today = forecasts(0, city);
    const double average = forecasts(1, city);
    const double trend = forecasts(2, city);
    std::printf("%-8s  %8.1f  %13.1f  %12.1f  %8.1f\n", cities[city], today, average, trend,
                (today + average + trend) / 3);
  }

  // [replicas]
  // One model on all devices, and two cities for each. Gathered, the cities stand in their order again.
  const auto replicas = fanout::replicate(std::get<OnTheTrend>(models), devices);
  const auto pairs = fanout::scatter(devices, week);
  const auto trend = fanout::gather(fanout::apply(replicas, pairs));  // [6]
  // [/replicas]

  std::printf("the trend, city by city:");
  for (const double forecast : trend) std::printf(" %.1f", forecast);
  std::printf("\n");
}
