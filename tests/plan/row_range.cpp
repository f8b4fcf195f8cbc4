// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

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

}  // namespace

TEST_CASE("a row range prints as a half-open interval") {
  CHECK(to_string(RowRange{15, 30}) == "[15, 30)");
  CHECK(to_string(RowRange{}) == "[0, 0)");
}
