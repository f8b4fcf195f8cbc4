// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::Context;
using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::RandomStream;
using fanout::Tensor;
using fanout::View;

namespace {

using Words = std::vector<std::uint32_t>;

Words philox_of(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, std::uint32_t key0,
                std::uint32_t key1) {
  std::uint32_t counter[4] = {a, b, c, d};
  fanout::detail::philox(counter, key0, key1);
  return {counter[0], counter[1], counter[2], counter[3]};
}

/// Three words of each row.
struct Noise {
  auto forward(Context auto& ctx, View<const int, 1> x) const {
    auto output = fanout::output<std::uint32_t>(ctx, 3);
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      RandomStream random = ctx.random(i);
      for (std::size_t k = 0; k < 3; ++k) output(i, k) = random();
    }
    return output;
  }
};

Words noise(ParallelModel<Noise, fanout::DeviceSet<fanout::HostDevice>>& model) {
  const auto result = model(Tensor<int, 1>(29));
  return Words(result.begin(), result.end());
}

}  // namespace

TEST_CASE("philox gives the known answers of its authors") {
  CHECK(philox_of(0, 0, 0, 0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox_of(ones, ones, ones, ones, ones, ones) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox_of(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a stream is philox with the block, the call and the row as counter and the seed as key") {
  RandomStream random(0x0123456789abcdefU, 7, 0x1111111122222222U);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const Words expected = philox_of(block, 7, 0x22222222, 0x11111111, 0x89abcdef, 0x01234567);
    for (const std::uint32_t word : expected) CHECK(random() == word);
  }
  static_assert(std::uniform_random_bit_generator<RandomStream>);
  static_assert([] {
    RandomStream at_compile_time(0, 0, 0);
    return at_compile_time();
  }() == 0x6627e8d5);
}

TEST_CASE("random numbers do not depend on the number of devices") {
  Words of_one;
  for (int devices = 1; devices <= 9; ++devices) {
    CAPTURE(devices);
    ParallelModel model{Noise{}, host_devices(devices), Options{.seed = 42}};
    const Words first = noise(model);
    const Words second = noise(model);
    if (devices == 1) of_one = first;
    CHECK(first == of_one);
    CHECK(second != first);
  }
}

TEST_CASE("random numbers differ between rows, calls and seeds") {
  ParallelModel model{Noise{}, host_devices(2), Options{.seed = 1}};
  ParallelModel other{Noise{}, host_devices(2), Options{.seed = 2}};
  ParallelModel high{Noise{}, host_devices(2), Options{.seed = 1 + (std::uint64_t{1} << 32U)}};
  std::set<std::uint32_t> words;
  for (int call = 0; call < 3; ++call) {
    for (auto* const each : {&model, &other, &high}) {
      for (const std::uint32_t word : noise(*each)) words.insert(word);
    }
  }
  CHECK(words.size() == 3 * 3 * 29 * 3);  // no word twice
}

TEST_CASE("uniform numbers lie from 0 up to 1, and their mean and variance are right") {
  double sum = 0;
  double squares = 0;
  const int n = 40000;
  for (std::uint64_t row = 0; row < n; ++row) {
    RandomStream random(3, 1, row);
    const double x = random.uniform();
    CHECK_UNARY(x >= 0 && x < 1);
    sum += x;
    squares += x * x;
  }
  CHECK(sum / n == doctest::Approx(0.5).epsilon(0.01));
  CHECK(squares / n - (sum / n) * (sum / n) == doctest::Approx(1.0 / 12).epsilon(0.02));
}

TEST_CASE("normal numbers have mean 0, variance 1, no skew and the right tails") {
  double sum = 0;
  double squares = 0;
  double cubes = 0;
  int beyond_two = 0;
  const int n = 200000;
  RandomStream random(5, 0, 0);
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    REQUIRE(std::isfinite(x));
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  CHECK(std::abs(sum / n) < 0.01);
  CHECK(squares / n == doctest::Approx(1).epsilon(0.02));
  CHECK(std::abs(cubes / n) < 0.05);
  CHECK(static_cast<double>(beyond_two) / n == doctest::Approx(0.0455).epsilon(0.05));
}

TEST_CASE("a stream gives the streams of later rows") {
  fanout::RandomStream first(7, 3, 4);
  CHECK(first() == fanout::RandomStream(7, 3, 4)());
  fanout::RandomStream here = first.after(0), there = first.after(5), expected_there(7, 3, 9), expected_here(7, 3, 4);
  for (int i = 0; i < 6; ++i) {
    CHECK(there() == expected_there());
    CHECK(here() == expected_here());  // from its beginning, though a number was taken
  }
}

TEST_CASE("below is uniform among the numbers below n, also where n is no power of two") {
  for (const std::uint64_t n : {std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{7}, std::uint64_t{10}}) {
    CAPTURE(n);
    constexpr int draws = 100'000;
    std::vector<int> counts(n);
    RandomStream random(3, 1, 4);
    for (int i = 0; i < draws; ++i) ++counts.at(random.below(n));
    const double expected = static_cast<double>(draws) / static_cast<double>(n);
    double chi_square = 0;
    for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
    CHECK(chi_square < 28);  // exceeded with a probability of 0.001 with the 9 degrees of freedom of n = 10
  }
}

TEST_CASE("below takes the lowest bits of one word, of two above 2^32, and the next ones if they are too large") {
  Words few;
  RandomStream same(5, 6, 7);
  for (int i = 0; i < 40; ++i) few.push_back(same());
  RandomStream random(5, 6, 7);
  CHECK(random.below(1) == 0);
  CHECK(random.below(0) == 0);
  std::size_t next = 0;
  for (int i = 0; i < 10; ++i) {
    while ((few[next] & 7U) >= 5) ++next;
    CHECK(random.below(5) == (few[next++] & 7U));
  }
  constexpr std::uint64_t all = std::uint64_t{1} << 32U;
  CHECK(random.below(all) == few[next]);
  ++next;
  const std::uint64_t wide = few[next] | std::uint64_t{few[next + 1]} << 32U;
  CHECK(random.below(std::uint64_t{1} << 63U) == (wide & ((std::uint64_t{1} << 63U) - 1)));
  static_assert(RandomStream(0, 0, 0).below(16) == (0x6627e8d5 & 15));
}
