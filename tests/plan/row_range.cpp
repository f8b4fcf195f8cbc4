// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <ranges>
#include <vector>

#include <fanout/plan/row_range.hpp>

using fanout::RowRange;

namespace {

static_assert(RowRange{15, 30}.size() == 15);
static_assert(RowRange{}.empty());
static_assert(RowRange{4, 4}.empty());
static_assert(RowRange{4, 4}.size() == 0);
static_assert(!RowRange{4, 5}.empty());
static_assert(RowRange{1, 2} == RowRange{1, 2});
static_assert(RowRange{1, 2} != RowRange{1, 3});
static_assert(RowRange{1, 3} != RowRange{2, 3});
static_assert(fanout::RowNumbers{1, 2} != fanout::RowNumbers{1, 3});
static_assert(fanout::RowNumbers{1, 2} != fanout::RowNumbers{2, 2});
static_assert(RowRange{15, 30}.local(17) == 2);
static_assert(std::ranges::forward_range<RowRange>);
static_assert(std::ranges::forward_range<RowRange::Enumerated>);

}  // namespace

TEST_CASE("a row range prints as a half-open interval") {
  CHECK(to_string(RowRange{15, 30}) == "[15, 30)");
  CHECK(to_string(RowRange{}) == "[0, 0)");
}

TEST_CASE("a loop over a range has the numbers of its rows in the whole batch") {
  std::vector<std::size_t> numbers;
  for (const std::size_t row : RowRange{15, 18}) numbers.push_back(row);
  CHECK(numbers == std::vector<std::size_t>{15, 16, 17});
  for ([[maybe_unused]] const std::size_t row : RowRange{4, 4}) CHECK_MESSAGE(false, "a row of none");
}

TEST_CASE("a row has a number in its shard and one in the batch") {
  using fanout::RowNumbers;
  std::vector<RowNumbers> numbers;
  const RowRange rows{15, 18};
  for (const RowNumbers& row : rows.enumerate()) {
    CHECK(rows.local(row.global) == row.local);
    numbers.push_back(row);
  }
  CHECK(numbers == std::vector<RowNumbers>{{0, 15}, {1, 16}, {2, 17}});
  for ([[maybe_unused]] const RowNumbers& row : RowRange{4, 4}.enumerate()) CHECK_MESSAGE(false, "a row of none");
  auto next = rows.enumerate().begin();
  CHECK((*next++).local == 0);
  CHECK((*next).local == 1);
}
