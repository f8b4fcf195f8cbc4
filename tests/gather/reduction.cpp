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

using fanout::pmean;
using fanout::psum;
namespace rules = fanout::rules;

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
  static_assert(rules::Sum::takes<int> && rules::Sum::takes<float> && rules::Sum::takes<std::complex<double>>);
  static_assert(!rules::Sum::takes<bool> && !rules::Sum::takes<Color> && !rules::Sum::takes<std::string>);
  static_assert(rules::Mean::takes<float> && rules::Mean::takes<long double>);
  static_assert(rules::Mean::takes<std::complex<float>>);
  static_assert(!rules::Mean::takes<int> && !rules::Mean::takes<bool> && !rules::Mean::takes<Color>);
  CHECK(rules::Sum::next<std::uint8_t>(200, 100, 0.5) == 44);  // wraps as its type does, whatever the share
}

TEST_CASE("a mean counts each value by its share") {
  CHECK(rules::Mean::first(3.0, 0.25) == 0.75);
  CHECK(rules::Mean::next(0.75, 4.0, 0.5) == 2.75);
  CHECK(rules::Mean::first(std::complex<float>(2, 4), 0.5) == std::complex<double>(1, 2));
}

template <class T>
using accumulated = rules::Sum::accumulated<T>;

TEST_CASE("sums of floating-point numbers are accumulated in double and rounded once") {
  static_assert(std::is_same_v<accumulated<float>, double> && std::is_same_v<accumulated<Half>, double>);
  static_assert(std::is_same_v<accumulated<double>, double> && std::is_same_v<accumulated<long double>, long double>);
  static_assert(std::is_same_v<accumulated<std::complex<float>>, std::complex<double>>);
  static_assert(std::is_same_v<accumulated<std::complex<double>>, std::complex<double>>);
  static_assert(std::is_same_v<accumulated<std::complex<long double>>, std::complex<long double>>);
  static_assert(std::is_same_v<accumulated<std::uint8_t>, std::uint8_t>);
  CHECK(rules::Sum::next<float>(rules::Sum::first(1.0F, 0.5), 0x1p-40F, 0.5) == 1 + 0x1p-40);
  static_assert(std::is_same_v<rules::Max::accumulated<float>, float>, "makes no number that it was not given");
}

TEST_CASE("pmax and pmin take what has an order") {
  static_assert(rules::Max::takes<int> && rules::Max::takes<double> && rules::Max::takes<Color>);
  static_assert(rules::Min::takes<std::uint8_t> && rules::Min::takes<bool> && rules::Min::takes<Half>);
  static_assert(!rules::Max::takes<std::complex<float>> && !rules::Min::takes<std::complex<float>>);
  static_assert(!rules::Max::takes<std::string>);
  CHECK(rules::Max::next(3, 2, 0.5) == 3);
  CHECK(rules::Max::next<std::uint8_t>(3, 200, 0.5) == 200);
  CHECK(rules::Min::next(3, -2, 0.5) == -2);
  CHECK(rules::Min::next(1.5F, 2.5F, 0.5) == 1.5F);
  CHECK(rules::Max::next(Color::red, Color::green, 0.5) == Color::green);
  CHECK(rules::Max::next(false, true, 0.5));
  CHECK(static_cast<float>(rules::Max::next(Half(1.5F), Half(2.5F), 0.5)) == 2.5F);
}

#if !defined(__FAST_MATH__)  // which says that there are none
TEST_CASE("pmax and pmin return a NaN if there is one") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double x : {1.0, infinity, -infinity}) {
    CHECK(std::isnan(rules::Max::next(nan, x, 0.5)));
    CHECK(std::isnan(rules::Max::next(x, nan, 0.5)));
    CHECK(std::isnan(rules::Min::next(nan, x, 0.5)));
    CHECK(std::isnan(rules::Min::next(x, nan, 0.5)));
  }
}

TEST_CASE("among equal numbers the one of the lowest rows is kept") {
  CHECK(std::signbit(rules::Max::next(-0.0, 0.0, 0.5)));
  CHECK(!std::signbit(rules::Min::next(0.0, -0.0, 0.5)));
}
#endif

TEST_CASE("a NaN in an array leaves the numbers beside it alone") {
  constexpr std::uint32_t nan_bits = 0x7fc00000;
  std::vector<float> so_far(37, 1.0F);
  std::vector<float> x(37, 2.0F);
  std::memcpy(&so_far[3], &nan_bits, sizeof nan_bits);
  std::memcpy(&x[20], &nan_bits, sizeof nan_bits);
  for (std::size_t i = 0; i < x.size(); ++i) so_far[i] = rules::Max::next(so_far[i], x[i], 0.5);
  int twos = 0;
  for (std::size_t i = 0; i < x.size(); ++i) twos += i != 3 && i != 20 && so_far[i] == 2.0F ? 1 : 0;
  CHECK(twos == 35);
}

TEST_CASE("a fold takes types that its function combines without loss, and keeps the type") {
  static_assert(rules::Fold<Product>::takes<float> && rules::Fold<Product>::takes<std::complex<double>>);
  static_assert(rules::Fold<Product>::takes<std::uint8_t>, "made an int by *, as by +");
  static_assert(rules::Fold<Product>::takes<Half> && rules::Sum::takes<Half>, "made of a float");
  static_assert(rules::Fold<Average>::takes<double>);
  static_assert(!rules::Fold<Average>::takes<int>, "it would lose the half");
  static_assert(!rules::Fold<Product>::takes<std::string>);
  CHECK(rules::Fold<Product>::first(3, 0.5) == 3);
  CHECK(rules::Fold<Product>::next<std::uint8_t>(3, 100, 0.5) == 44);
  CHECK(static_cast<float>(rules::Fold<Product>::next(Half(1.5F), Half(2), 0.5)) == 3);
}

TEST_CASE("a rule holds the value that it is to gather") {
  CHECK(fanout::reduce(1.5, Product{}).value == 1.5);
  CHECK(fanout::pmax(3).value == 3);
  CHECK(fanout::pmin(std::string("text")).value == "text");
}

TEST_CASE("psum and pmean move rvalues and copy lvalues") {
  const std::string text = "text";
  static_assert(std::is_same_v<decltype(psum(text).value), std::string>);
  CHECK(psum(text).value == "text");
  auto owner = std::make_unique<int>(3);
  const int* const address = owner.get();
  CHECK(pmean(std::move(owner)).value.get() == address);
}
