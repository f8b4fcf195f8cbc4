// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/simulated/noise.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

using fanout::detail::mixed;
using fanout::detail::noise_of;

TEST_CASE("bits are mixed as by splitmix64") {
  // The first two outputs of the reference implementation, seeded with 0.
  static_assert(mixed(0) == 0xE220A8397B1DCDAFU);
  static_assert(mixed(0x9E3779B97F4A7C15U) == 0x6E789E6AA1B965F4U);
}

TEST_CASE("noise has mean 0, variance 1, the kurtosis of twelve summed numbers, and no correlation") {
  constexpr int count = 100'000;
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  double neighbours = 0;
  double devices = 0;
  for (std::uint64_t shard = 1; shard <= count; ++shard) {
    const double z = noise_of(42, 0, shard);
    CHECK(std::abs(z) <= 6);
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    neighbours += z * noise_of(42, 0, shard + 1);
    devices += z * noise_of(42, 1, shard);
  }
  // Four standard deviations of each statistic.
  CHECK(std::abs(sum / count) < 4 / std::sqrt(count));
  CHECK(std::abs(squares / count - 1) < 4 * std::sqrt(2.0 / count));
  CHECK(std::abs(fourth / count - 2.9) < 4 * std::sqrt(96.0 / count));  // 3 - 1.2 / 12
  CHECK(std::abs(neighbours / count) < 4 / std::sqrt(count));
  CHECK(std::abs(devices / count) < 4 / std::sqrt(count));
}

TEST_CASE("noise depends on the seed, the device and the shard") {
  static_assert(noise_of(1, 2, 3) == noise_of(1, 2, 3));
  static_assert(noise_of(1, 2, 3) != noise_of(2, 2, 3));
  static_assert(noise_of(1, 2, 3) != noise_of(1, 3, 3));
  static_assert(noise_of(1, 2, 3) != noise_of(1, 2, 4));
  static_assert(noise_of(1, 2, 3) != noise_of(2, 1, 3));
}
