// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled twice: as all tests, and with -ffast-math, under which no comparison sees a NaN or an infinity.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/plan/even_split.hpp>
#include <fanout/plan/weighted_split.hpp>

#include "support/message_of.hpp"

using fanout::check_plan;
using fanout::EvenSplit;
using fanout::InvalidArgument;
using fanout::Plan;
using fanout::WeightedSplit;
using fanout_test::message_of;
using fanout_test::says;

static_assert(fanout::Split<WeightedSplit>);

namespace {

constexpr auto most_rows = static_cast<std::size_t>(-1);
using Sizes = std::vector<std::size_t>;
__extension__ using Wide = unsigned __int128;

static_assert(WeightedSplit{50, 30, 20}(10, 3) == Plan{{{0, 5}, 0}, {{5, 8}, 1}, {{8, 10}, 2}});
static_assert(WeightedSplit{50, 30, 20}(1, 3) == Plan{{{0, 1}, 0}});
static_assert(WeightedSplit{50, 30, 20}(2, 3) == Plan{{{0, 1}, 0}, {{1, 2}, 1}}, "1.0, 0.6, 0.4: the larger part wins");
static_assert(WeightedSplit{1, 3}(2, 2) == Plan{{{0, 1}, 0}, {{1, 2}, 1}}, "0.5 and 1.5: of equal parts the first");
static_assert(WeightedSplit{1, 9}(3, 2) == Plan{{{0, 3}, 1}}, "0.3 and 2.7: the first stays idle");
static_assert(WeightedSplit{1, 0, 1}(5, 3) == Plan{{{0, 3}, 0}, {{3, 5}, 2}}, "nothing for a weight of zero");
static_assert(WeightedSplit{1, 0, 1}(0, 3) == Plan{{{0, 0}, 0}, {{0, 0}, 2}}, "nor an empty shard");
static_assert(WeightedSplit{7}(5, 1) == Plan{{{0, 5}, 0}});
static_assert(WeightedSplit{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}(25, 10) == EvenSplit{}(25, 10), "many, while compiling");
static_assert(WeightedSplit{std::array{0.5F, 0.25F, 0.25F}}(8, 3) == WeightedSplit{2, 1, 1}(8, 3));
constexpr WeightedSplit constant{50, 30, 20};
static_assert(constant(10, 3).size() == 3);

static_assert(!std::is_default_constructible_v<WeightedSplit>);
static_assert(!std::is_convertible_v<int, WeightedSplit>, "a number alone is no split");
static_assert(!std::is_constructible_v<WeightedSplit, const char*>);
static_assert(!std::is_constructible_v<WeightedSplit, std::string>, "letters are no weights");
static_assert(!std::is_constructible_v<WeightedSplit, char, char>);
static_assert(!std::is_constructible_v<WeightedSplit, std::vector<std::string>>);

/// How many rows each device gets.
template <class Split>
Sizes sizes(const Split& split, std::size_t rows, std::size_t devices) {
  const Plan plan = split(rows, devices);
  REQUIRE_NOTHROW(check_plan(plan, rows, devices));
  Sizes sizes(devices);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (i > 0) REQUIRE(plan[i - 1].device < plan[i].device);
    if (rows != 0) CHECK(!plan[i].rows.empty());
    sizes[plan[i].device] = plan[i].rows.size();
  }
  return sizes;
}

/// Largest remainders as the books have them: sorted, in numbers of twice the width.
Sizes hamilton(std::size_t rows, const std::vector<std::uint64_t>& weights) {
  const Wide total = std::accumulate(weights.begin(), weights.end(), Wide{0});
  Sizes sizes;
  std::vector<Wide> remainders;
  for (const std::uint64_t weight : weights) {
    sizes.push_back(static_cast<std::size_t>(Wide{rows} * weight / total));
    remainders.push_back(Wide{rows} * weight % total);
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  const std::size_t left = rows - std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  for (std::size_t i = 0; i < left; ++i) ++sizes[order[i]];
  return sizes;
}

struct Random : std::mt19937_64 {
  using std::mt19937_64::mt19937_64;
  std::uint64_t bits(int count) { return (*this)() >> (64 - count); }
  std::size_t from(std::size_t least, std::size_t most) { return least + (*this)() % (most - least + 1); }
};

template <class... W>
std::string refusal(W... weights) {
  return message_of<InvalidArgument>([&] { const WeightedSplit split(weights...); });
}

}  // namespace

TEST_CASE("weights may have any arithmetic types, variables too, and stand in any range") {
  const Plan expected = WeightedSplit{50, 30, 20}(100, 3);
  int i = 50;
  const float f = 30;
  const std::size_t s = 20;
  CHECK(WeightedSplit{i, f, s}(100, 3) == expected);
  CHECK(WeightedSplit{0.5L, short{30} / 100.0, 0.2}(100, 3) == expected);
  const WeightedSplit copied = {i, f, s};
  i = 0;
  CHECK(copied(100, 3) == expected);

  const std::vector<int> vector{50, 30, 20};
  CHECK(WeightedSplit{vector}(100, 3) == expected);
  CHECK(WeightedSplit(vector)(100, 3) == expected);
  CHECK(WeightedSplit{std::list{50.0, 30.0, 20.0}}(100, 3) == expected);
  const unsigned array[] = {50, 30, 20};
  CHECK(WeightedSplit{array}(100, 3) == expected);
  CHECK(WeightedSplit{std::vector<bool>{true, false, true}}(4, 3) == WeightedSplit{1, 0, 1}(4, 3));
}

TEST_CASE("only the proportions of weights count, however large or small they are") {
  const Plan expected = WeightedSplit{5, 3, 2}(1003, 3);
  for (int exponent = -1022; exponent <= 1020; ++exponent) {
    CAPTURE(exponent);
    double one = 1;
    for (int i = 0; i < exponent; ++i) one *= 2;
    for (int i = 0; i > exponent; --i) one /= 2;
    CHECK(WeightedSplit{5 * one, 3 * one, 2 * one}(1003, 3) == expected);
  }
  CHECK(WeightedSplit{std::numeric_limits<double>::max(), std::numeric_limits<double>::max()}(8, 2) ==
        EvenSplit{}(8, 2));
  const double least = std::numeric_limits<double>::denorm_min();
  CHECK(WeightedSplit{least, least}(8, 2) == EvenSplit{}(8, 2));
  CHECK(sizes(WeightedSplit{least, std::numeric_limits<double>::max()}, 1000, 2) == Sizes{0, 1000});
  const double normal = std::numeric_limits<double>::min();  // the others are halves of it, without its exponent
  CHECK(sizes(WeightedSplit{normal / 2, normal, normal / 4}, 700, 3) == Sizes{200, 400, 100});
  CHECK(WeightedSplit{least, std::numeric_limits<double>::max()}(0, 2).size() == 2);  // not of weight zero
  CHECK(WeightedSplit{-0.0, 1}(0, 2).size() == 1);
}

TEST_CASE("rows are apportioned by largest remainders, exactly for any number of rows") {
  Random random(7);
  for (int i = 0; i < 4000; ++i) {
    const std::size_t devices = random.from(1, 20);
    const int weight_bits = static_cast<int>(random.from(1, 50));
    const int row_bits = static_cast<int>(random.from(1, 64));
    CAPTURE(i);
    CAPTURE(devices);
    std::vector<std::uint64_t> weights;
    for (std::size_t device = 0; device < devices; ++device) weights.push_back(random.bits(weight_bits));
    weights[random.from(0, devices - 1)] |= 1;
    const std::size_t rows = i % 10 == 0 ? most_rows : random.bits(row_bits);
    CAPTURE(rows);
    const Sizes found = sizes(WeightedSplit{weights}, rows, devices);
    CHECK(found == hamilton(rows, weights));
    for (std::size_t a = 0; a < devices; ++a) {
      for (std::size_t b = 0; b < devices; ++b) {
        if (weights[a] > weights[b]) CHECK(found[a] >= found[b]);
      }
      if (weights[a] == 0) CHECK(found[a] == 0);
    }
  }
}

TEST_CASE("each device is within one row of its quota, also where weights are no whole numbers") {
  Random random(8);
  std::uniform_real_distribution<double> uniform(0.001, 1);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t devices = random.from(1, 20);
    CAPTURE(i);
    std::vector<double> weights;
    for (std::size_t device = 0; device < devices; ++device) weights.push_back(uniform(random));
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const std::size_t rows = random.bits(static_cast<int>(random.from(1, 40)));
    const Sizes found = sizes(WeightedSplit{weights}, rows, devices);
    for (std::size_t device = 0; device < devices; ++device) {
      const double quota = static_cast<double>(rows) * (weights[device] / sum);
      const double difference = static_cast<double>(found[device]) - quota;
      CHECK(difference < 1.01);
      CHECK(difference > -1.01);
    }
  }
}

TEST_CASE("equal weights make the plan of an even split") {
  for (std::size_t devices = 1; devices <= 20; ++devices) {
    const WeightedSplit split{std::vector<double>(devices, 0.1)};
    for (std::size_t rows = 0; rows < 64; ++rows) {
      CAPTURE(devices);
      CAPTURE(rows);
      CHECK(split(rows, devices) == EvenSplit{}(rows, devices));
    }
    CHECK(split(most_rows, devices) == EvenSplit{}(most_rows, devices));
  }
  const WeightedSplit thousands{std::vector<int>(4096, 3)};
  CHECK(thousands(10000, 4096) == EvenSplit{}(10000, 4096));
}

TEST_CASE("a weight that is negative, infinite or no number is refused with its position") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(says(refusal(50, -3), "invalid weight", "WeightedSplit, position 1", "expected a finite number", "found -3"));
  CHECK(says(refusal(1, 2, infinity), "position 2", "found inf"));
  CHECK(says(refusal(-infinity, 2), "position 0", "found -inf"));
  CHECK(says(refusal(1, std::numeric_limits<double>::quiet_NaN()), "position 1", "nan"));
  CHECK(says(refusal(1, std::numeric_limits<float>::infinity()), "position 1", "found inf"));
  CHECK(says(refusal(1, -std::numeric_limits<double>::denorm_min()), "position 1", "found -4.94066e-324"));
  CHECK(says(refusal(std::vector<double>{1, 2, -0.25}), "position 2", "found -0.25"));
}

TEST_CASE("weights that add up to nothing are refused") {
  CHECK(says(refusal(0), "weights that add up to nothing", "WeightedSplit", "at least one weight above zero",
             "only zeros (1)"));
  CHECK(says(refusal(0, 0.0, -0.0), "only zeros (3)"));
  CHECK(says(refusal(std::vector<int>{}), "found no weights"));
}

TEST_CASE("another number of devices than of weights is refused, and both are named") {
  const WeightedSplit split{50, 30, 20};
  for (const std::size_t rows : {0U, 10U}) {
    CHECK(says(message_of<InvalidArgument>([&] { split(rows, 2); }), "wrong number of weights", "WeightedSplit",
               "one for each of the 2 devices", "found 3"));
    CHECK_THROWS_AS(split(rows, 4), InvalidArgument);
  }
}
