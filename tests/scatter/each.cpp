// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/scatter/each.hpp>

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::each;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

TEST_CASE("a list of texts or numbers goes to every replica as it is") {
  const std::vector<std::string> names{"a", "b", "c"};
  const ParallelModel model{
      [&names](std::span<const int> rows, const std::vector<std::string>& all, const std::vector<int>& numbers) {
        CHECK(&all == &names);
        CHECK(numbers.size() == 2);
        return rows.size();
      },
      host_devices(2)};
  const auto sizes = model(std::vector{1, 2, 3, 4}, each(names), each(std::vector{7, 8}));
  CHECK(sizes[0] == 2);
  CHECK(sizes[1] == 2);
}

TEST_CASE("a list of elements with arrays is split inside each element") {
  std::vector<Tensor<int, 1>> tensors;
  tensors.emplace_back(4);
  tensors.emplace_back(4);
  const std::vector<View<const int, 1>> views(tensors.begin(), tensors.end());
  const ParallelModel model{[](const std::vector<View<const int, 1>>& pieces) {
                              CHECK(pieces.size() == 2);
                              return pieces[1].size();
                            },
                            host_devices(2)};
  CHECK(model(each(tensors))[1] == 2);
  CHECK(model(each(std::span(tensors)))[1] == 2);
  CHECK(model(each(views))[1] == 2);
  CHECK(model(tensors)[1] == 2);
  CHECK(fanout::batch_rows(each(tensors)) == std::size_t{4});
  tensors.emplace_back(5);
  CHECK_THROWS_AS((void)fanout::batch_rows(each(tensors)), fanout::ShapeMismatch);
}

TEST_CASE("a list alone has no rows") { CHECK_FALSE(fanout::batch_rows(each(std::vector{1, 2, 3})).has_value()); }
