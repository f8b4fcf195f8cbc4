// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/tree/map_key.hpp>

using fanout::detail::append_key;
using fanout::detail::holds_nan;
using fanout::detail::is_compared_key;

namespace {

enum class Side : signed char { left = -1, right = 1 };
struct Padded {
  char small;
  double large;
};
struct PointingKey {
  int x;
  const char* text;
};
struct Derived : std::string {
  int version = 0;
};

template <class K>
std::string text_of(const K& key) {
  std::string text;
  append_key(text, key);
  return text;
}

static_assert(is_compared_key<bool> && is_compared_key<char8_t> && is_compared_key<long double>);
static_assert(is_compared_key<std::wstring> && is_compared_key<std::set<std::vector<Side>>>);
static_assert(is_compared_key<fanout::DeviceId>);
static_assert(!is_compared_key<const char*> && !is_compared_key<std::nullptr_t> && !is_compared_key<int Padded::*>);
static_assert(!is_compared_key<std::pair<int, const int*>> && !is_compared_key<PointingKey>);
static_assert(!is_compared_key<std::unique_ptr<int>> && !is_compared_key<std::shared_ptr<int>>);
static_assert(!is_compared_key<Derived> && !is_compared_key<std::unordered_set<int>>);

}  // namespace

TEST_CASE("numbers that differ have other texts, the shortest that read back the same") {
  CHECK(text_of(0.1) == "0.1");
  CHECK(text_of(0.1F) == "0.1");
  CHECK(text_of(1.0 + 1e-9) == "1.000000001");
  CHECK(text_of(-0.0) == text_of(0.0));
  CHECK(text_of(1.0) != text_of(std::nextafter(1.0, 2.0)));
  CHECK(text_of(1.0L) != text_of(std::nextafter(1.0L, 2.0L)));
  CHECK(text_of(0.0) != text_of(std::numeric_limits<double>::denorm_min()));
  CHECK(text_of(std::numeric_limits<float>::infinity()) == "inf");
  CHECK(text_of(true) == "1");
  CHECK(text_of(Side::left) == "-1");
  CHECK(text_of(~0ULL) == "18446744073709551615");
}

TEST_CASE("keys are told apart field by field, whatever is in the padding") {
  CHECK(text_of(Padded{'a', 2.5}) == "{97, 2.5}");
  CHECK(text_of(std::pair{1, std::string("a\"")}) == "(1, \"a\\\"\")");
  CHECK(text_of(std::array{std::optional<int>(), std::optional<int>(0)}) == "({}, {0})");
  CHECK(text_of(std::variant<int, long>(std::in_place_index<0>, 1)) !=
        text_of(std::variant<int, long>(std::in_place_index<1>, 1)));
  CHECK(text_of(std::chrono::milliseconds(3)) == "{3}");
  CHECK(text_of(std::vector<std::string>{"a", "b"}) != text_of(std::vector<std::string>{"a\", \"b"}));
  CHECK(text_of(std::wstring(L"a")) != text_of(std::wstring(L"b")));
  CHECK(text_of(std::complex<float>(1, 2)) == "{1, 2}");
}

TEST_CASE("NaN is found in all parts of a key") {
  const double nan = std::nan("");
  CHECK(holds_nan(nan));
  CHECK(holds_nan(std::pair{1, std::optional(nan)}));
  CHECK(holds_nan(Padded{'a', nan}));
  CHECK(holds_nan(std::complex<double>(0, nan)));
  CHECK_FALSE(holds_nan(Padded{'a', 1}));
  CHECK_FALSE(holds_nan(std::string("nan")));
}
