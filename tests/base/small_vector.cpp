// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>

#include <fanout/base/small_vector.hpp>

using fanout::detail::SmallVector;

namespace {

template <std::size_t N>
constexpr SmallVector<int, N> squares(int size) {
  SmallVector<int, N> vector;
  for (int i = 0; i < size; ++i) vector.push_back(i * i);
  return vector;
}

template <std::size_t N>
constexpr bool holds_squares(const SmallVector<int, N>& vector, int size) {
  int i = 0;
  for (const int element : vector) {
    if (element != i * i || vector[static_cast<std::size_t>(i)] != element) return false;
    ++i;
  }
  return i == size && vector.size() == static_cast<std::size_t>(size);
}

static_assert(SmallVector<int>().size() == 0);
static_assert(holds_squares(squares<4>(4), 4));
static_assert(holds_squares(squares<4>(11), 11), "more than the few, while compiling");
static_assert(squares<4>(3) == squares<4>(3));
static_assert(squares<4>(6) == squares<4>(6));
static_assert(squares<4>(3) != squares<4>(4));
static_assert(squares<4>(4) != squares<4>(5));
constexpr SmallVector<int, 4> constant = squares<4>(4);
static_assert(constant[3] == 9);

}  // namespace

TEST_CASE("a small vector keeps its elements in the order they were added, few or many") {
  for (int size = 0; size < 40; ++size) {
    CAPTURE(size);
    CHECK(holds_squares(squares<8>(size), size));
    CHECK(squares<8>(size) == squares<8>(size));
    CHECK(squares<8>(size) != squares<8>(size + 1));
  }
}

TEST_CASE("a small vector is a value: copies do not share elements") {
  for (const int size : {3, 8, 20}) {
    const auto original = squares<8>(size);
    auto copy = original;
    copy.push_back(size * size);
    CHECK(holds_squares(copy, size + 1));
    CHECK(holds_squares(original, size));
    copy = original;
    CHECK(copy == original);
    const auto moved = std::move(copy);
    CHECK(moved == original);
  }
}

TEST_CASE("a small vector that was moved from can be walked and assigned") {
  for (const int size : {3, 8, 20}) {
    auto vector = squares<8>(size);
    const auto moved = std::move(vector);
    std::size_t walked = 0;  // NOLINTBEGIN(bugprone-use-after-move): this is what is tested
    for ([[maybe_unused]] const int element : vector) ++walked;
    CHECK(walked == vector.size());
    vector = squares<8>(12);  // NOLINTEND(bugprone-use-after-move)
    CHECK(holds_squares(vector, 12));
    CHECK(holds_squares(moved, size));
  }
}

TEST_CASE("a small vector can add one of its own elements, also the one that makes it many") {
  SmallVector<std::string, 2> vector;
  vector.push_back("long enough to be allocated");
  for (int i = 0; i < 20; ++i) vector.push_back(vector[0]);
  CHECK(vector.size() == 21);
  for (const std::string& text : vector) CHECK(text == "long enough to be allocated");
}
