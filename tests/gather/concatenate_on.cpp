// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::concat;
using fanout::Context;
using fanout::Extents;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// [rows, columns] whose element at (r, c) is 10 * r + c + from.
Tensor<int, 2> table(std::size_t rows, std::size_t columns, int from = 0) {
  Tensor<int, 2> tensor(rows, columns);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) tensor(r, c) = static_cast<int>(10 * r + c) + from;
  }
  return tensor;
}

template <class T, std::size_t R>
std::vector<T> all_values(const Tensor<T, R>& tensor) {
  return std::vector<T>(tensor.begin(), tensor.end());
}

Tensor<int, 1> rows(std::size_t n) { return Tensor<int, 1>(n); }

}  // namespace

TEST_CASE("arrays are concatenated on the second axis, though shards bring different numbers of columns") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        return concat<1>(table(2, x.size(), 100 * static_cast<int>(ctx.rank())));
                      },
                      host_devices(2)};
  const Tensor<int, 2> result = model(rows(5));
  CHECK(result.extents() == Extents<2>{2, 5});
  CHECK(all_values(result) == std::vector{0, 1, 2, 100, 101, 10, 11, 12, 110, 111});
}

TEST_CASE("the axis may be in the middle or the last, of tensors, views and outputs, below a tree") {
  static constexpr int zeros[12] = {};
  ParallelModel model{
      [](Context auto& ctx, View<const int, 1>) {
        const int rank = static_cast<int>(ctx.rank());
        auto output = fanout::output<int>(ctx, 1, 2);
        for (std::size_t i = 0; i < output.size(); ++i) {
          output.data()[i] = 100 * rank + static_cast<int>(i);
        }
        const View<const int, 3> view(zeros, 2, 3, 2);
        std::map<std::string, Tensor<int, 2>> map;
        map["a"] = table(1, 2, rank);
        return std::tuple{concat<1>(output), concat<2>(output), concat<1>(std::pair{view, map}), concat<2>(view)};
      },
      host_devices(2)};
  const auto [middle, last, tree, view] = model(rows(4));
  CHECK(middle.extents() == Extents<3>{2, 2, 2});
  CHECK(all_values(middle) == std::vector{0, 1, 100, 101, 2, 3, 102, 103});
  CHECK(last.extents() == Extents<3>{2, 1, 4});
  CHECK(all_values(last) == std::vector{0, 1, 100, 101, 2, 3, 102, 103});
  CHECK(tree.first.extents() == Extents<3>{2, 6, 2});
  CHECK(all_values(tree.second.at("a")) == std::vector{0, 1, 1, 2});
  CHECK(view.extents() == Extents<3>{2, 3, 4});
}

TEST_CASE("an axis may have no elements, in some shards or in all") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        return std::tuple{concat<1>(table(2, ctx.rank() == 1 ? 0 : 1)), concat<1>(table(2, 0)),
                                          concat<1>(table(0, 3)), concat<1>(table(1, x.size()))};
                      },
                      host_devices(3)};
  const auto [some, none, no_rows, by_rows] = model(rows(3));
  CHECK(all_values(some) == std::vector{0, 0, 10, 10});
  CHECK(some.extents() == Extents<2>{2, 2});
  CHECK(none.extents() == Extents<2>{2, 0});
  CHECK(no_rows.extents() == Extents<2>{0, 9});
  CHECK(by_rows.extents() == Extents<2>{1, 3});
  CHECK(std::get<3>(model(rows(0))).extents() == Extents<2>{1, 0});
}

TEST_CASE("with one shard or more devices than rows, the arrays of the shards that ran are concatenated") {
  for (const int devices : {1, 2, 9}) {
    ParallelModel model{[](View<const int, 1> x) { return concat<1>(table(2, x.size())); }, host_devices(devices)};
    CHECK(model(rows(4)).extents() == Extents<2>{2, 4});
  }
}

TEST_CASE("inside another rule concat<0> is the default") {
  ParallelModel model{[](View<const int, 1> x) {
                        return fanout::psum(std::tuple{1, concat<0>(1), concat<0>(x)});
                      },
                      host_devices(2)};
  const auto [sum, each, by_rows] = model(rows(5));
  CHECK(sum == 2);
  CHECK(all_values(each) == std::vector{1, 1});
  CHECK(by_rows.size() == 5);
}

TEST_CASE("extents of other axes that differ are refused with path, shards and extents") {
  ParallelModel model{[](View<const int, 1> x) {
                        return std::tuple{1, concat<1>(table(x.size(), 2))};
                      },
                      host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model(rows(5)); }), "output[1]", "[3, :]",
             "shard 0 on host:0, rows [0, 3)", "[2, 2]", "shard 1 on host:1, rows [3, 5)", "concatenated on axis 1"));
}

TEST_CASE("a vector of rows has no other axis to be concatenated on") {
  const fanout::ParallelModel model{[](fanout::RowRange rows) { return std::vector<int>(rows.size()); },
                                    fanout::host_devices(2), fanout::Options{.axis = 1}};
  CHECK(fanout_test::says(fanout_test::message_of<fanout::ShapeMismatch>([&] { model(fanout::Range{4}); }),
                          "an axis from -1 to 0, found axis 1"));
}
