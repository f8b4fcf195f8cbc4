// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <fanout/gather/gather_rows.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::Context;
using fanout::dict;
using fanout::each;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Range;
using fanout::RowRange;
using fanout::rows;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::values;

namespace {

struct Word {
  std::string text;
  std::vector<int> places;

  friend bool operator==(const Word&, const Word&) = default;
};

struct Branch {
  int number = 0;
  std::vector<Branch> branches;

  friend bool operator==(const Branch& a, const Branch& b) { return a.number == b.number && a.branches == b.branches; }
};

class Sealed {
 public:
  explicit Sealed(std::string text) : text_(std::move(text)) {}
  friend bool operator==(const Sealed&, const Sealed&) = default;

 private:
  std::string text_;
};

/// Calls `make(row)` for each row. The result must be that of plain loops, on any number of devices.
template <class Make>
void check_rows(const Make& make) {
  using Row = decltype(make(std::size_t{}));
  constexpr std::size_t count = 20;
  std::vector<Row> expected;
  for (std::size_t row = 0; row < count; ++row) expected.push_back(make(row));
  for (const int devices : {1, 2, 3, 7, 17, 20}) {
    CAPTURE(devices);
    const ParallelModel model{[&make](RowRange some) {
                                std::vector<Row> result;
                                for (std::size_t row = some.first; row < some.last; ++row) result.push_back(make(row));
                                return result;
                              },
                              host_devices(devices)};
    const auto result = model(Range{count});
    static_assert(std::is_same_v<decltype(result), const std::vector<Row>>);
    CHECK(result == expected);
  }
}

}  // namespace

TEST_CASE("a vector whose elements hold no tensors is concatenated by element, on any number of devices") {
  check_rows([](std::size_t row) { return std::vector<int>(row, static_cast<int>(row)); });
  check_rows([](std::size_t row) { return std::vector<std::vector<std::string>>(row % 3, {"a", "b"}); });
  check_rows([](std::size_t row) { return std::vector<bool>(row, true); });
  check_rows([](std::size_t row) { return std::pair(static_cast<int>(row), 2.5); });
  check_rows([](std::size_t row) { return std::tuple(std::to_string(row), row); });
  check_rows([](std::size_t row) { return row % 2 == 0 ? std::optional(std::to_string(row)) : std::nullopt; });
  check_rows([](std::size_t row) { return std::map<std::string, std::size_t>{{std::to_string(row), row}}; });
  check_rows([](std::size_t row) { return std::deque<std::size_t>(row, row); });
  check_rows([](std::size_t row) {
    return row % 2 == 0 ? std::variant<int, std::string>(7) : std::variant<int, std::string>("text");
  });
  check_rows([](std::size_t row) { return Word{std::to_string(row), {1, 2}}; });
  check_rows([](std::size_t row) { return Branch{static_cast<int>(row), std::vector<Branch>(row % 3)}; });
  check_rows([](std::size_t row) { return Sealed(std::to_string(row)); });
}

TEST_CASE("a struct inside itself is a row under any rule that takes rows, and is merged by reduce") {
  const ParallelModel model{[](RowRange some) {
                              std::vector<Branch> rows;
                              for (const std::size_t row : some) rows.push_back({static_cast<int>(row), {{7, {}}}});
                              const Branch root{1, rows};
                              return std::tuple(
                                  fanout::concat<0>(rows), fanout::pmax(fanout::concat<0>(rows)), fanout::first(root),
                                  fanout::reduce(root, [](Branch all, const Branch& more) {
                                    all.number += more.number;
                                    all.branches.insert(all.branches.end(), more.branches.begin(), more.branches.end());
                                    return all;
                                  }));
                            },
                            host_devices(2)};
  const auto [rows, inside, first, merged] = model(Range{3});
  const std::vector<Branch> expected{{0, {{7, {}}}}, {1, {{7, {}}}}, {2, {{7, {}}}}};
  CHECK(rows == expected);
  CHECK(inside == expected);
  CHECK(first == Branch{1, {expected[0], expected[1]}});
  CHECK(merged == Branch{2, expected});
}

TEST_CASE("rows stand in trees, and a span of them is copied") {
  const std::vector<std::pair<int, std::string>> table{{1, "a"}, {2, "b"}};
  const ParallelModel model{[&table](RowRange some) {
                              return dict("rows"_k = std::vector<std::vector<int>>(some.size(), {7}),
                                          "table"_k = std::span(table), "first"_k = fanout::first(std::span(table)));
                            },
                            host_devices(2)};
  const auto result = model(Range{3});
  CHECK(result["rows"_k] == std::vector<std::vector<int>>(3, {7}));
  CHECK(result["table"_k] == std::vector<std::pair<int, std::string>>{{1, "a"}, {2, "b"}, {1, "a"}, {2, "b"}});
  CHECK(result["first"_k] == table);
}

TEST_CASE("psum and pmax of a vector of rows combine its numbers") {
  const ParallelModel model{[](Context auto& ctx, RowRange) {
                              const int rank = static_cast<int>(ctx.rank());
                              return std::tuple{fanout::psum(std::vector<std::vector<int>>{{1, rank}, {2}}),
                                                fanout::pmax(std::vector<std::pair<int, double>>{{rank, -rank}})};
                            },
                            host_devices(3)};
  const auto [sums, greatest] = model(Range{6});
  CHECK(sums == std::vector<std::vector<int>>{{3, 3}, {6}});
  CHECK(greatest == std::vector<std::pair<int, double>>{{2, 0.0}});
}

TEST_CASE("rows(v) makes tensors, views and outputs rows of the result, which owns them") {
  for (const int devices : {1, 2, 3, 9}) {
    const ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                                std::vector<Tensor<int, 1>> tensors;
                                std::vector<std::pair<int, View<const int, 1>>> views;
                                auto output = fanout::output<int>(ctx);
                                for (std::size_t i = 0; i < x.size(); ++i) {
                                  output[i] = x[i];
                                  tensors.push_back(fanout_test::count_to(static_cast<std::size_t>(x[i])));
                                  views.emplace_back(x[i], View<const int, 1>(&x[i], 1));
                                }
                                return std::tuple{rows(std::move(tensors)), rows(std::move(views)),
                                                  rows(std::vector{output}),
                                                  rows(std::vector<int>{x.begin(), x.end()})};
                              },
                              host_devices(devices)};
    const auto [tensors, views, outputs, numbers] = model(fanout_test::count_to(9));
    static_assert(std::is_same_v<decltype(tensors), const std::vector<Tensor<int, 1>>>);
    static_assert(std::is_same_v<decltype(views), const std::vector<std::pair<int, Tensor<int, 1>>>>);
    REQUIRE(tensors.size() == 9);
    REQUIRE(views.size() == 9);
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK(tensors[i].size() == i);
      CHECK(views[i].first == static_cast<int>(i));
      CHECK(values(views[i].second) == std::vector{static_cast<int>(i)});
    }
    REQUIRE(outputs.size() == static_cast<std::size_t>(devices));
    std::vector<int> all;
    for (const auto& output : outputs) all.insert(all.end(), output.begin(), output.end());
    CHECK(all == values(fanout_test::count_to(9)));
    CHECK(numbers == all);
  }
}

TEST_CASE("rows of any kind stay sharded, and are gathered later") {
  const ParallelModel model{[](RowRange some) {
                              return fanout::sharded(std::vector<std::pair<std::size_t, std::string>>(
                                  some.size(), {some.first, std::to_string(some.first)}));
                            },
                            host_devices(2)};
  const auto left = model(Range{4});
  CHECK(left[1] == std::vector<std::pair<std::size_t, std::string>>(2, {2, "2"}));
  for (int run = 0; run < 2; ++run) {  // the values stay where they are
    CHECK(fanout::gather(left) ==
          std::vector<std::pair<std::size_t, std::string>>{{0, "0"}, {0, "0"}, {2, "2"}, {2, "2"}});
  }
}

TEST_CASE("bools stay sharded, and a span of views is stacked view by view") {
  const ParallelModel model{
      [](View<const int, 1> x) {
        static thread_local std::vector<View<const int, 1>> views;
        views = {x, View<const int, 1>(x.data(), 1)};
        return std::tuple{fanout::sharded(std::vector<bool>(x.size(), true)), fanout::stack(std::span(views))};
      },
      host_devices(2)};
  const auto [bools, stacked] = model(fanout_test::count_to(4));
  CHECK(bools[1] == std::vector<bool>{true, true});
  CHECK(fanout::gather(bools) == std::vector<bool>(4, true));
  static_assert(std::is_same_v<decltype(stacked), const std::vector<Tensor<int, 2>>>);
  CHECK(stacked.at(0)(1, 1) == 3);
  CHECK(stacked.at(1)(1, 0) == 2);
}

TEST_CASE("each(v) gathers every element with the elements at the same index") {
  const ParallelModel model{[](Context auto& ctx, RowRange) {
                              const int rank = static_cast<int>(ctx.rank());
                              return std::tuple{each(std::vector{rank, 7}),
                                                each(std::vector<std::vector<int>>{{rank}, {7, rank}}),
                                                fanout::psum(each(std::vector{rank, 7}))};
                            },
                            host_devices(3)};
  const auto [numbers, vectors, sums] = model(Range{6});
  static_assert(std::is_same_v<decltype(numbers), const std::vector<Tensor<int, 1>>>);
  REQUIRE(numbers.size() == 2);
  CHECK(values(numbers[0]) == std::vector{0, 1, 2});
  CHECK(values(numbers[1]) == std::vector{7, 7, 7});
  CHECK(vectors == std::vector<std::vector<int>>{{0, 1, 2}, {7, 0, 7, 1, 7, 2}});
  CHECK(sums == std::vector{3, 21});
}

TEST_CASE("bools in a deque or a span are gathered as a list, like other numbers") {
  const ParallelModel model{[](Context auto& ctx, RowRange) {
                              static constexpr bool shown[] = {true, false};
                              const std::deque<bool> bools{ctx.rank() == 1, true};
                              return std::tuple{bools, fanout::first(bools), each(std::span(shown))};
                            },
                            host_devices(2)};
  const auto [bools, first, listed] = model(Range{4});
  static_assert(std::is_same_v<decltype(bools), const std::deque<Tensor<bool, 1>>>);
  static_assert(std::is_same_v<decltype(listed), const std::vector<Tensor<bool, 1>>>);
  for (std::size_t shard = 0; shard < 2; ++shard) {
    CHECK(bools[0][shard] == (shard == 1));
    CHECK(bools[1][shard]);
    CHECK(listed[0][shard]);
    CHECK(!listed[1][shard]);
  }
  CHECK(first == std::deque<bool>{false, true});
}

TEST_CASE("lists of different lengths are refused, and the error names rows(v)") {
  const ParallelModel model{[](Context auto& ctx, RowRange) { return each(std::vector<int>(1 + ctx.rank())); },
                            host_devices(2)};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(Range{4}); }), "output", "1 trees", "2",
             "rows(std::move(v))"));
}

TEST_CASE("rows(v) of a result are rows on any axis, as those of an argument") {
  const ParallelModel model{[](fanout::StridedView<const float, 2> x, std::span<const Word> words) {
                              std::vector<Word> taken(words.begin(), words.end());
                              std::vector<int> columns(words.size(), static_cast<int>(x.extent(1)));
                              return std::tuple(rows(std::move(taken)), rows(std::move(columns)));
                            },
                            host_devices(2), fanout::Options{.axis = 1}};
  const std::vector<Word> words{{"a", {1}}, {"b", {}}, {"c", {2, 3}}, {"d", {}}};
  const auto [taken, columns] = model(Tensor<float, 2>(3, 4), rows(words));
  CHECK(taken == words);
  CHECK(columns == std::vector{2, 2, 2, 2});
}
