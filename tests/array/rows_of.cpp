// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/rows_of.hpp>
#include <fanout/array/tensor.hpp>

using fanout::rows_of;
using fanout::Tensor;
using fanout::View;

namespace {

using IntRows = decltype(rows_of(std::declval<Tensor<int, 2>&>()));
static_assert(std::forward_iterator<IntRows::iterator> && std::ranges::sized_range<IntRows>);
static_assert(std::is_same_v<std::ranges::range_value_t<IntRows>, View<int, 1>>);

template <class X>
concept HasRowsOf = requires(X x) {
  rows_of(x);
};
static_assert(!HasRowsOf<Tensor<int, 1>&>, "its elements are its rows");

}  // namespace

TEST_CASE("the rows of a tensor are a range of writable views") {
  Tensor<int, 2> x(3, 4);
  int value = 0;
  for (auto row : rows_of(x)) std::fill(row.begin(), row.end(), ++value);
  CHECK(x == fanout::tensor<int>({{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}));
  CHECK(std::ranges::distance(rows_of(x)) == 3);
  CHECK(rows_of(x).size() == 3);
  auto at = rows_of(x).begin();
  CHECK((*at++)[0] == 1);
  CHECK((*at)[0] == 2);
}

TEST_CASE("rows of a const tensor are read-only and keep the other axes") {
  const Tensor<int, 3> x(2, 3, 4);
  std::size_t row_number = 0;
  for (const auto row : rows_of(x)) {
    static_assert(std::is_same_v<decltype(row), const View<const int, 2>>);
    CHECK(row.data() == x.data() + 12 * row_number++);
  }
  CHECK(row_number == 2);
  for (auto plane : rows_of(x.view())) {
    for (auto row : rows_of(plane)) CHECK(row.size() == 4);
  }
  CHECK(rows_of(x.rows({1, 1})).empty());
}

TEST_CASE("a tensor with rows of no elements still has all its rows") {
  const Tensor<int, 2> x(3, 0);
  int count = 0;
  for (auto row : rows_of(x)) count += row.empty() ? 1 : 0;
  CHECK(count == 3);
}
