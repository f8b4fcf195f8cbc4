// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/schedule/partition_layers.hpp>

#include "support/message_of.hpp"

using fanout::partition_layers;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Counts = std::vector<std::size_t>;

struct Problem {
  std::vector<double> seconds;
  std::vector<double> speeds;
  std::vector<std::size_t> bytes;
  std::vector<std::size_t> capacities;
};

constexpr double never = std::numeric_limits<double>::infinity();

/// The time of the slowest stage; infinite if a stage does not fit.
double slowest(const Problem& problem, const Counts& counts) {
  double most = 0;
  std::size_t layer = 0;
  for (std::size_t device = 0; device < counts.size(); ++device) {
    double seconds = 0;
    std::size_t bytes = 0;
    for (const std::size_t end = layer + counts[device]; layer < end; ++layer) {
      seconds += problem.seconds[layer];
      if (!problem.bytes.empty()) bytes += problem.bytes[layer];
    }
    if (!problem.bytes.empty() && bytes > problem.capacities[device]) return never;
    if (counts[device] != 0)
      most = std::max(most, problem.speeds[device] > 0 ? seconds / problem.speeds[device] : never);
  }
  return most;
}

/// The least of all divisions, each of which is tried.
double least(const Problem& problem, Counts& counts, std::size_t device, std::size_t left) {
  if (device + 1 == problem.speeds.size()) {
    counts[device] = left;
    return slowest(problem, counts);
  }
  double best = never;
  for (counts[device] = 0; counts[device] <= left; ++counts[device]) {
    best = std::min(best, least(problem, counts, device + 1, left - counts[device]));
  }
  return best;
}

}  // namespace

TEST_CASE("layers are divided so that the slowest stage is as fast as possible") {
  const std::vector<double> equal(8, 1.0);
  CHECK(partition_layers(equal, std::vector{1.0, 1.0}) == Counts{4, 4});
  CHECK(partition_layers(equal, std::vector{3.0, 1.0}) == Counts{6, 2});
  CHECK(partition_layers(std::vector{1.0, 1.0, 1.0, 1.0}, std::vector{1.0, 1.0, 1.0}) == Counts{1, 1, 2});
  // A heavy last layer, as that of a language model.
  CHECK(partition_layers(std::vector{1.0, 1.0, 1.0, 1.0, 4.0}, std::vector{1.0, 1.0}) == Counts{4, 1});
  CHECK(partition_layers(equal, std::vector{1.0, 1.0}, std::vector<std::size_t>(8, 10),
                         std::vector<std::size_t>{20, 80}) == Counts{2, 6});
}

TEST_CASE("stages without layers") {
  CHECK(partition_layers(std::vector{1.0}, std::vector{1.0, 1.0, 1.0}) == Counts{0, 0, 1});
  CHECK(partition_layers(std::vector<double>{}, std::vector{1.0, 1.0}) == Counts{0, 0});
  CHECK(partition_layers(std::vector{1.0, 1.0}, std::vector{1.0, 0.0}) == Counts{2, 0});
  CHECK(partition_layers(std::vector<double>{}, std::vector<double>{}).empty());
}

TEST_CASE("no division is better: 1,000 random problems against all divisions") {
  std::mt19937 random(20261128);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  std::size_t without_room = 0;
  for (int i = 0; i < 1'000; ++i) {
    Problem problem;
    // Whole numbers and halves, so that sums are exact whatever their order.
    for (std::size_t n = below(9); n > 0; --n) problem.seconds.push_back(static_cast<double>(below(20)) / 2);
    constexpr double speeds[] = {0, 0.5, 1, 1, 1, 2, 4};
    for (std::size_t n = 1 + below(4); n > 0; --n) problem.speeds.push_back(speeds[below(7)]);
    if (below(2) == 0) {
      for (std::size_t n = 0; n < problem.seconds.size(); ++n) problem.bytes.push_back(below(10));
      for (std::size_t n = 0; n < problem.speeds.size(); ++n) problem.capacities.push_back(below(30));
    }
    if (problem.bytes.empty()) problem.capacities.clear();
    CAPTURE(i);
    Counts all(problem.speeds.size());
    const double wanted = least(problem, all, 0, problem.seconds.size());
    const auto divide = [&] {
      return partition_layers(problem.seconds, problem.speeds, problem.bytes, problem.capacities);
    };
    if (wanted == never) {
      ++without_room;
      CHECK_THROWS_AS(static_cast<void>(divide()), fanout::InvalidArgument);
    } else {
      const Counts counts = divide();
      std::size_t sum = 0;
      for (const std::size_t count : counts) sum += count;
      CHECK(sum == problem.seconds.size());
      CHECK(slowest(problem, counts) == wanted);
    }
  }
  CHECK(without_room > 50);
  CHECK(without_room < 500);
}

TEST_CASE("1,000 layers on 64 devices") {
  std::mt19937 random(1);
  std::vector<double> seconds;
  for (int i = 0; i < 1'000; ++i) seconds.push_back(std::uniform_real_distribution<double>(0, 1)(random));
  const Counts counts = partition_layers(seconds, std::vector<double>(64, 1.0));
  const Problem problem{seconds, std::vector<double>(64, 1.0), {}, {}};
  double sum = 0;
  for (const double each : seconds) sum += each;
  CHECK(slowest(problem, counts) < 1.15 * sum / 64);
}

TEST_CASE("numbers that make no sense") {
  const std::vector<double> two{1.0, 1.0};
  const std::vector<std::size_t> bytes{10, 10};
  const auto error = [](const auto&... arguments) {
    return message_of<fanout::InvalidArgument>([&] { static_cast<void>(partition_layers(arguments...)); });
  };
  CHECK(says(error(std::vector{1.0, -1.0}, two), "partition_layers, seconds, position 1"));
  CHECK(says(error(two, std::vector{never}), "partition_layers, speeds, position 0"));
  CHECK(says(error(two, two, bytes, std::vector<std::size_t>{1}), "partition_layers, capacities: expected 2, found 1"));
  CHECK(says(error(two, two, std::vector<std::size_t>{1}, bytes), "partition_layers, bytes: expected 2, found 1"));
  CHECK(
      says(error(two, two, bytes, std::vector<std::size_t>{9, 9}), "2 layers of 20 bytes, and 2 devices for 18 bytes"));
  CHECK(says(error(two, std::vector<double>{}), "the layers do not fit"));
}
