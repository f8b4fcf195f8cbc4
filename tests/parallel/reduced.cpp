// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/parallel/reduced.hpp>

using fanout::MeanOverShards;
using fanout::pmean;
using fanout::psum;
using fanout::SumOverShards;

namespace {
enum class Color { red };
}  // namespace

TEST_CASE("psum takes numbers, and pmean floating and complex ones") {
  static_assert(SumOverShards::takes<int> && SumOverShards::takes<float> && SumOverShards::takes<std::complex<double>>);
  static_assert(!SumOverShards::takes<bool> && !SumOverShards::takes<Color> && !SumOverShards::takes<std::string>);
  static_assert(MeanOverShards::takes<float> && MeanOverShards::takes<long double>);
  static_assert(MeanOverShards::takes<std::complex<float>>);
  static_assert(!MeanOverShards::takes<int> && !MeanOverShards::takes<bool> && !MeanOverShards::takes<Color>);
  CHECK(SumOverShards::next<std::uint8_t>(200, 100, 0.5) == 44);  // wraps as its type does, whatever the share
}

TEST_CASE("a mean counts each value by its share, and one without a share not at all") {
  CHECK(MeanOverShards::first(3.0, 0.25) == 0.75);
  CHECK(MeanOverShards::next(0.75, 4.0, 0.5) == 2.75);
  CHECK(MeanOverShards::first(std::complex<float>(2, 4), 0.5) == std::complex<float>(1, 2));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(MeanOverShards::first(nan, 0) == 0);
  CHECK(MeanOverShards::next(1.5, nan, 0) == 1.5);
}

TEST_CASE("psum and pmean take values over and copy what is named") {
  const std::string text = "text";
  static_assert(std::is_same_v<decltype(psum(text)), fanout::Reduced<SumOverShards, std::string>>);
  CHECK(psum(text).value == "text");
  auto owner = std::make_unique<int>(3);
  const int* const address = owner.get();
  CHECK(pmean(std::move(owner)).value.get() == address);
}
