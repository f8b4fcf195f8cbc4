// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <ranges>
#include <string>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/plan/parts.hpp>

using fanout::RowRange;

namespace {

std::vector<RowRange> listed(const RowRange& all, std::size_t rows) {
  std::vector<RowRange> list;
  for (const RowRange part : fanout::parts(all, rows)) list.push_back(part);
  return list;
}

static_assert(std::ranges::forward_range<decltype(fanout::parts(RowRange{}, 1))>);
static_assert(*fanout::parts(RowRange{3, 9}, 4).begin() == RowRange{3, 7});

}  // namespace

TEST_CASE("parts of a row range have the rows that were asked for, and the last one has the rest") {
  CHECK(listed({10, 20}, 4) == std::vector<RowRange>{{10, 14}, {14, 18}, {18, 20}});
  CHECK(listed({10, 20}, 5) == std::vector<RowRange>{{10, 15}, {15, 20}});
  CHECK(listed({10, 20}, 10) == std::vector<RowRange>{{10, 20}});
  CHECK(listed({10, 20}, ~std::size_t{0}) == std::vector<RowRange>{{10, 20}});
  CHECK(listed({10, 11}, 1) == std::vector<RowRange>{{10, 11}});
}

TEST_CASE("an empty row range has no parts") {
  CHECK(listed({}, 1).empty());
  CHECK(listed({7, 7}, 3).empty());
}

TEST_CASE("parts without rows are refused") {
  try {
    static_cast<void>(fanout::parts({0, 5}, 0));
    FAIL("no exception");
  } catch (const fanout::InvalidArgument& error) {
    CHECK(std::string(error.what()) == "parts without rows at parts: expected 1 row or more, found 0");
  }
}
