// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/data/shuffle.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/base/error.hpp>

#include "support/message_of.hpp"

using fanout::Shuffle;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Samples = std::vector<std::uint64_t>;

Samples first_of(const Shuffle::Order& order, std::uint64_t count) {
  Samples samples;
  for (std::uint64_t place = 0; place < count; ++place) samples.push_back(order[place]);
  return samples;
}

/// How far a chi-square of counts that should be equal is from its mean, in standard deviations. `free` of the counts
/// can be chosen.
double surprise(const std::vector<double>& counts, double expected, double free) {
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - expected) * (count - expected) / expected;
  return std::abs(chi_square - free) / std::sqrt(2 * free);
}

constexpr std::uint64_t large[] = {65'535,
                                   65'536,
                                   65'537,
                                   60'000,
                                   (std::uint64_t{1} << 32U) - 1,
                                   (std::uint64_t{1} << 32U) + 1,
                                   1'000'000'000'000'007,
                                   ~std::uint64_t{0}};

}  // namespace

TEST_CASE("an order has each sample once, for all sizes up to 2000") {
  for (std::uint64_t size = 0; size <= 2'000; ++size) {
    CAPTURE(size);
    const Shuffle::Order order = Shuffle{.seed = size % 7}.order(size % 5, size);
    CHECK(order.size() == size);
    std::vector<bool> seen(size);
    for (std::uint64_t place = 0; place < size; ++place) {
      const std::uint64_t sample = order[place];
      REQUIRE(sample < size);
      REQUIRE(!seen[sample]);
      seen[sample] = true;
    }
  }
}

TEST_CASE("the place of a sample is found, for small sizes and for large ones") {
  for (const std::uint64_t size : {1U, 2U, 3U, 5U, 17U, 255U, 256U, 257U, 1'000U}) {
    const Shuffle::Order order = Shuffle{.seed = 9}.order(4, size);
    for (std::uint64_t place = 0; place < size; ++place) REQUIRE(order.place_of(order[place]) == place);
  }
  for (const std::uint64_t size : large) {
    CAPTURE(size);
    const Shuffle::Order order = Shuffle{.seed = 1}.order(2, size);
    for (std::uint64_t i = 0; i < 1'000; ++i) {
      const std::uint64_t place = i * (size / 1'000) + i % 2;
      const std::uint64_t sample = order[place];
      REQUIRE(sample < size);
      REQUIRE(order.place_of(sample) == place);
      REQUIRE(order[order.place_of(place)] == place);
    }
  }
}

// Computed by a program in another language.
TEST_CASE("orders stay the same in all versions and on all platforms") {
  CHECK(first_of(Shuffle{.seed = 1}.order(0, 10), 10) == Samples{7, 8, 0, 3, 1, 2, 9, 6, 4, 5});
  CHECK(first_of(Shuffle{.seed = 1}.order(1, 10), 10) == Samples{1, 5, 2, 3, 9, 0, 7, 4, 8, 6});
  CHECK(first_of(Shuffle{.seed = 0x0123456789abcdef}.order(0xfedcba9876543210, 60'000), 10) ==
        Samples{30'289, 20'946, 59'109, 4'422, 3'158, 23'835, 31'941, 15'168, 49'891, 39'613});
  CHECK(first_of(Shuffle{.seed = 1}.order(0, std::uint64_t{1} << 40U), 5) ==
        Samples{124'603'029'392, 787'134'702'873, 160'455'534'767, 1'055'417'778'919, 931'321'952'548});
  CHECK(first_of(Shuffle{.seed = 2}.order(3, ~std::uint64_t{0}), 3) ==
        Samples{8'182'671'547'016'108'749U, 6'014'079'153'959'309'857U, 9'201'537'026'593'015'979U});
}

TEST_CASE("an order is a constant expression of at most 64 bytes that can be copied") {
  static_assert(Shuffle{.seed = 1}.order(0, 10)[0] == 7);
  static_assert(Shuffle{.seed = 1}.order(0, 10).place_of(7) == 0);
  static_assert(sizeof(Shuffle::Order) <= 64);
  static_assert(std::is_trivially_copyable_v<Shuffle::Order>);
}

TEST_CASE("each epoch and each seed has an order of its own, in all of their bits") {
  std::map<Samples, int> orders;
  int made = 0;
  for (int bit = -1; bit < 64; ++bit) {
    const std::uint64_t number = bit < 0 ? 0 : std::uint64_t{1} << bit;
    ++orders[first_of(Shuffle{.seed = number}.order(0, 1'000), 1'000)];
    ++made;
    if (bit < 0) continue;
    ++orders[first_of(Shuffle{.seed = 0}.order(number, 1'000), 1'000)];
    ++made;
  }
  CHECK(orders.size() == static_cast<std::size_t>(made));
}

TEST_CASE("all orders of a few samples are equally likely") {
  double factorial = 1;
  for (std::uint64_t size = 2; size <= 6; ++size) {
    factorial *= static_cast<double>(size);
    const auto trials = static_cast<std::uint64_t>(factorial * 40);
    std::map<Samples, double> counted;
    for (std::uint64_t trial = 0; trial < trials; ++trial) {
      ++counted[first_of(Shuffle{.seed = trial / 50}.order(trial % 50, size), size)];
    }
    std::vector<double> counts;
    for (const auto& [order, count] : counted) counts.push_back(count);
    CHECK(static_cast<double>(counts.size()) == factorial);
    CAPTURE(size);
    CHECK(surprise(counts, 40, factorial - 1) < 4);
  }
}

TEST_CASE("each sample comes at each place equally often, and after each other sample") {
  for (const std::uint64_t size : {7U, 64U, 100U}) {
    CAPTURE(size);
    constexpr std::uint64_t epochs = 4'000;
    std::vector<double> at(size * size);
    std::vector<double> steps(size - 1);
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      const Samples samples = first_of(Shuffle{.seed = 7}.order(epoch, size), size);
      for (std::uint64_t place = 0; place < size; ++place) {
        ++at[place * size + samples[place]];
        if (place > 0) ++steps[(samples[place] + size - samples[place - 1]) % size - 1];
      }
    }
    const auto free = static_cast<double>((size - 1) * (size - 1));
    CHECK(surprise(at, static_cast<double>(epochs) / static_cast<double>(size), free) < 4);
    CHECK(surprise(steps, epochs, static_cast<double>(size - 2)) < 4);
  }
}

TEST_CASE("the first samples of a large order are spread over all of it") {
  for (const std::uint64_t size : large) {
    CAPTURE(size);
    std::vector<double> counts(50);
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
      const Shuffle::Order order = Shuffle{.seed = 3}.order(epoch, size);
      for (std::uint64_t place = 0; place < 1'000; ++place) ++counts[order[place] / (size / 50 + 1)];
    }
    CHECK(surprise(counts, 200, 49) < 4);
  }
}

TEST_CASE("a place or a sample outside of an order is refused where checks are on") {
  const Shuffle::Order order = Shuffle{}.order(0, 10);
  CHECK(says(message_of<fanout::InvalidArgument>([&] { static_cast<void>(order[10]); }), "a place outside", "below 10",
             "found 10"));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { static_cast<void>(order.place_of(11)); }), "not in the order",
             "below 10", "found 11"));
  CHECK_THROWS_AS(static_cast<void>(Shuffle{}.order(0, 0)[0]), fanout::InvalidArgument);
}
