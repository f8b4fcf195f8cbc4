// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What docs/design.md says of arrays, and that it is so.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/print.hpp>
#include <fanout/array/to_element.hpp>
#include <fanout/fanout.hpp>

using fanout::Tensor;
using fanout::View;

TEST_CASE("arrays are made as docs/design.md says") {
  const std::size_t rows = 2;
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  // [make]
  Tensor<float, 2> zeros({rows, 3});                            // [2, 3]; also zeros(rows, 3) and zeros{rows, 3}
  const auto ones = Tensor<float, 2>::full({rows, 3}, 1);       // [2, 3]
  const auto values = fanout::tensor<float>({{1, 2}, {3, 4}});  // [2, 2], from its elements
  const auto batch = fanout::tensor(numbers, {rows, 3});        // [2, 3], a copy of a vector's elements
  const auto raw = Tensor<float, 2>::uninitialized({rows, 3});  // [2, 3], not set to anything
  // [/make]
  CHECK(zeros == Tensor<float, 2>::full({2, 3}, 0));
  CHECK(ones(1, 2) == 1);
  CHECK(values(1, 0) == 3);
  CHECK(batch(1, 0) == 4);
  CHECK(raw.size() == 6);

  std::vector<float> mine(6);
  // [view]
  View table(mine.data(), rows, 3);  // View<float, 2> of memory of yours; extents in braces need View<float, 2>
  View line = mine;                  // View<float, 1>
  // [/view]
  table(1, 2) = 5;
  CHECK(mine[5] == 5);
  CHECK(line.size() == 6);

  // [use]
  auto [n, columns] = batch.extents();  // 2 and 3
  View writes = zeros;                  // View<float, 2>; of a const tensor a View<const float, 2>
  writes(0, 1) = batch[1][2];           // batch[1] is a row
  for (auto row : fanout::rows_of(zeros)) std::reverse(row.begin(), row.end());
  View column = batch.reshape({n * columns, 1});  // the same elements
  fanout::copy(ones, zeros.rows({0, rows}));      // into memory that is there
  zeros = batch.rows({1, 2});                     // a copy, which may change the extents
  const bool same = zeros == batch.rows({1, 2});
  const std::string text = to_string(zeros);    // "[1, 3] {{4, 5, 6}}", by <fanout/array/print.hpp>
  const auto wide = fanout::to<double>(batch);  // Tensor<double, 2>, by <fanout/array/to_element.hpp>
  // [/use]
  CHECK(n == 2);
  CHECK(columns == 3);
  CHECK(column.extents() == fanout::Extents<2>{{6, 1}});
  CHECK(same);
  CHECK(text == "[1, 3] {{4, 5, 6}}");
  CHECK(wide(1, 2) == 6);
}
