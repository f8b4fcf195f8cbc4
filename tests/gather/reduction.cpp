// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/gather/reduction.hpp>

using fanout::FoldOverShards;
using fanout::MaxOverShards;
using fanout::MeanOverShards;
using fanout::MinOverShards;
using fanout::pmean;
using fanout::psum;
using fanout::SumOverShards;

namespace {
enum class Color { red, green };

struct Product {
  auto operator()(auto a, auto b) const { return a * b; }
};
struct Average {
  double operator()(auto a, auto b) const { return (a + b) / 2.0; }
};

/// A class of numbers that are computed with as floats.
struct Half {
  std::uint16_t sixteenths;
  Half() = default;
  explicit Half(float x) : sixteenths(static_cast<std::uint16_t>(16 * x)) {}
  operator float() const { return static_cast<float>(sixteenths) / 16; }  // NOLINT(google-explicit-constructor)
};
}  // namespace

template <>
inline constexpr bool fanout::enable_scalar<Half> = true;

TEST_CASE("psum takes numbers, and pmean floating and complex ones") {
  static_assert(SumOverShards::takes<int> && SumOverShards::takes<float> && SumOverShards::takes<std::complex<double>>);
  static_assert(!SumOverShards::takes<bool> && !SumOverShards::takes<Color> && !SumOverShards::takes<std::string>);
  static_assert(MeanOverShards::takes<float> && MeanOverShards::takes<long double>);
  static_assert(MeanOverShards::takes<std::complex<float>>);
  static_assert(!MeanOverShards::takes<int> && !MeanOverShards::takes<bool> && !MeanOverShards::takes<Color>);
  CHECK(SumOverShards::next<std::uint8_t>(200, 100, 0.5) == 44);  // wraps as its type does, whatever the share
  constexpr int most = std::numeric_limits<int>::max();
  static_assert(fanout::detail::Add()(most, 2) == std::numeric_limits<int>::min() + 1);
  static_assert(fanout::detail::Add()(std::int64_t{-1} << 63, std::int64_t{-1}) == std::int64_t{0x7fffffffffffffff});
  static_assert(fanout::detail::product_of<std::uint16_t>(0xffff, 0xffff) == 1, "no product of ints");
  static_assert(fanout::detail::product_of(most, 2) == -2);
  static_assert(fanout::detail::difference_of(-most, 2) == most);
}

TEST_CASE("a mean counts each value by its share") {
  CHECK(MeanOverShards::first(3.0, 0.25) == 0.75);
  CHECK(MeanOverShards::next(0.75, 4.0, 0.5) == 2.75);
  CHECK(MeanOverShards::first(std::complex<float>(2, 4), 0.5) == std::complex<double>(1, 2));
}

TEST_CASE("sums of floating-point numbers are accumulated in double and rounded once") {
  using fanout::detail::narrowed;
  using fanout::detail::wide_t;
  using fanout::detail::widened;
  static_assert(std::is_same_v<wide_t<float>, double> && std::is_same_v<wide_t<Half>, double>);
  static_assert(std::is_same_v<wide_t<double>, double> && std::is_same_v<wide_t<long double>, long double>);
  static_assert(std::is_same_v<wide_t<std::complex<float>>, std::complex<double>>);
  static_assert(std::is_same_v<wide_t<std::complex<double>>, std::complex<double>>);
  static_assert(std::is_same_v<wide_t<std::complex<long double>>, std::complex<long double>>);
  static_assert(std::is_same_v<wide_t<std::uint8_t>, std::uint8_t> && std::is_same_v<wide_t<Color>, Color>);
  static_assert(std::is_same_v<wide_t<fanout::DeviceId>, fanout::DeviceId>);
  CHECK(widened<double>(Half(1.5F)) == 1.5);
  CHECK(static_cast<float>(narrowed<Half>(1.5)) == 1.5F);
  CHECK(narrowed<std::complex<float>>(widened<std::complex<double>>(std::complex<float>(1, 2))) ==
        std::complex<float>(1, 2));
  CHECK(SumOverShards::next<float>(SumOverShards::first(1.0F, 0.5), 0x1p-40F, 0.5) == 1 + 0x1p-40);
  static_assert(std::is_same_v<MaxOverShards::accumulated<float>, float>, "makes no number that it was not given");
}

TEST_CASE("pmax and pmin take what has an order") {
  static_assert(MaxOverShards::takes<int> && MaxOverShards::takes<double> && MaxOverShards::takes<Color>);
  static_assert(MinOverShards::takes<std::uint8_t> && MinOverShards::takes<bool> && MinOverShards::takes<Half>);
  static_assert(!MaxOverShards::takes<std::complex<float>> && !MinOverShards::takes<std::complex<float>>);
  static_assert(!MaxOverShards::takes<std::string>);
  CHECK(MaxOverShards::next(3, 2, 0.5) == 3);
  CHECK(MaxOverShards::next<std::uint8_t>(3, 200, 0.5) == 200);
  CHECK(MinOverShards::next(3, -2, 0.5) == -2);
  CHECK(MinOverShards::next(1.5F, 2.5F, 0.5) == 1.5F);
  CHECK(MaxOverShards::next(Color::red, Color::green, 0.5) == Color::green);
  CHECK(MaxOverShards::next(false, true, 0.5));
  CHECK(static_cast<float>(MaxOverShards::next(Half(1.5F), Half(2.5F), 0.5)) == 2.5F);
}

#if !defined(__FAST_MATH__)  // which says that there are none
TEST_CASE("pmax and pmin return a NaN if there is one") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double x : {1.0, infinity, -infinity}) {
    CHECK(std::isnan(MaxOverShards::next(nan, x, 0.5)));
    CHECK(std::isnan(MaxOverShards::next(x, nan, 0.5)));
    CHECK(std::isnan(MinOverShards::next(nan, x, 0.5)));
    CHECK(std::isnan(MinOverShards::next(x, nan, 0.5)));
  }
}

TEST_CASE("among equal numbers the one of the lowest rows is kept") {
  CHECK(std::signbit(MaxOverShards::next(-0.0, 0.0, 0.5)));
  CHECK(!std::signbit(MinOverShards::next(0.0, -0.0, 0.5)));
}
#endif

TEST_CASE("a NaN in an array leaves the numbers beside it alone") {
  constexpr std::uint32_t nan_bits = 0x7fc00000;
  std::vector<float> so_far(37, 1.0F);
  std::vector<float> x(37, 2.0F);
  std::memcpy(&so_far[3], &nan_bits, sizeof nan_bits);
  std::memcpy(&x[20], &nan_bits, sizeof nan_bits);
  for (std::size_t i = 0; i < x.size(); ++i) so_far[i] = MaxOverShards::next(so_far[i], x[i], 0.5);
  int twos = 0;
  for (std::size_t i = 0; i < x.size(); ++i) twos += i != 3 && i != 20 && so_far[i] == 2.0F ? 1 : 0;
  CHECK(twos == 35);
}

TEST_CASE("a fold takes types that its function combines without loss, and keeps the type") {
  static_assert(FoldOverShards<Product>::takes<float> && FoldOverShards<Product>::takes<std::complex<double>>);
  static_assert(FoldOverShards<Product>::takes<std::uint8_t>, "made an int by *, as by +");
  static_assert(FoldOverShards<Product>::takes<Half> && SumOverShards::takes<Half>, "made of a float");
  static_assert(FoldOverShards<Average>::takes<double>);
  static_assert(!FoldOverShards<Average>::takes<int>, "it would lose the half");
  static_assert(!FoldOverShards<Product>::takes<std::string>);
  CHECK(FoldOverShards<Product>::first(3, 0.5) == 3);
  CHECK(FoldOverShards<Product>::next<std::uint8_t>(3, 100, 0.5) == 44);
  CHECK(static_cast<float>(FoldOverShards<Product>::next(Half(1.5F), Half(2), 0.5)) == 3);
}

TEST_CASE("reduce is a rule of the function's type") {
  static_assert(std::is_same_v<decltype(fanout::reduce(1.5, Product{})),
                               fanout::detail::WithRule<FoldOverShards<Product>, double>>);
  CHECK(fanout::reduce(1.5, Product{}).value == 1.5);
  CHECK(fanout::pmax(3).value == 3);
  CHECK(fanout::pmin(std::string("text")).value == "text");
}

TEST_CASE("psum and pmean move rvalues and copy lvalues") {
  const std::string text = "text";
  static_assert(std::is_same_v<decltype(psum(text)), fanout::detail::WithRule<SumOverShards, std::string>>);
  CHECK(psum(text).value == "text");
  auto owner = std::make_unique<int>(3);
  const int* const address = owner.get();
  CHECK(pmean(std::move(owner)).value.get() == address);
}
