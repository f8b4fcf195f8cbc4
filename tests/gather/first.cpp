// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::Context;
using fanout::dict;
using fanout::first;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::psum;
using fanout::Tensor;
using fanout::View;
using fanout_test::count_to;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// All rows on the second of three devices.
struct AllOnSecond {
  fanout::Plan operator()(std::size_t rows, std::size_t) const {
    return {{.rows = {0, 0}, .device = 0}, {.rows = {0, rows}, .device = 1}, {.rows = {rows, rows}, .device = 2}};
  }
};

/// What a class without fields may be that says itself how it is put together.
struct Log {
  std::vector<int> lines;
};

}  // namespace

template <>
struct fanout::leaf_traits<Log> {
  using piece_type = Log;
  static std::size_t rows(const Log& log) { return log.lines.size(); }
  static Log piece(const Log& log, std::size_t, std::size_t) { return log; }
  static Log concatenate(const auto& pieces, const LeafPath&) {
    Log all;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      all.lines.insert(all.lines.end(), pieces[i].lines.begin(), pieces[i].lines.end());
    }
    return all;
  }
};

TEST_CASE("first keeps the first shard's value, and copies what it borrows") {
  for (const int devices : {1, 2, 5, 9}) {
    ParallelModel model{
        [](Context auto& ctx, View<const int, 1> x) {
          auto output = fanout::output<int>(ctx, 2);
          output(0, 1) = 10 * x[0] + 1;
          const auto scratch = fanout::empty<int>(ctx, 1);
          scratch[0] = 7 + x[0];
          return first(std::tuple{x[0], std::string_view("text"), x, output, scratch, Tensor<int, 1>(x),
                                  std::vector{x[0], 5}, std::vector<bool>{x[0] == 0}, Log{{x[0]}}, ctx.device().id()});
        },
        host_devices(devices)};
    const auto [number, text, view, output, scratch, tensor, vector, bools, log, device] = model(count_to(5));
    static_assert(std::is_same_v<decltype(number), const int>);
    static_assert(std::is_same_v<decltype(text), const std::string>);
    static_assert(std::is_same_v<decltype(view), const Tensor<int, 1>>);
    static_assert(std::is_same_v<decltype(output), const Tensor<int, 2>>);
    CHECK(number == 0);
    CHECK(text == "text");
    const std::size_t rows = 5 / static_cast<std::size_t>(devices > 5 ? 5 : devices) + (devices == 2 ? 1 : 0);
    CHECK(view.size() == rows);
    CHECK(output.extents() == fanout::Extents<2>{rows, 2});
    CHECK(output(0, 1) == 1);
    CHECK(scratch[0] == 7);
    CHECK(tensor.size() == rows);
    CHECK(vector == std::vector{0, 5});
    CHECK(bools == std::vector<bool>{true});
    CHECK(log.lines == std::vector{0});
    CHECK(device == fanout::DeviceId{.kind = "host", .index = 0});
  }
}

TEST_CASE("first moves what the shard owns") {
  const int* address = nullptr;
  ParallelModel model{[&address](Context auto& ctx, View<const int, 1> x) {
                        Tensor<int, 1> tensor(x);
                        if (ctx.rank() == 0) address = tensor.data();
                        return std::pair{first(std::move(tensor)), 1};
                      },
                      host_devices(2)};
  const auto [tensor, each] = model(count_to(4));
  CHECK(tensor.data() == address);
  CHECK(each.size() == 2);
}

TEST_CASE("first accepts other keys, lengths and extents from the other shards") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1>) {
                        const bool is_first = ctx.rank() == 0;
                        std::map<std::string, int> map{{is_first ? "a" : "b", 1}};
                        return first(dict("map"_k = map, "trees"_k = std::vector<std::pair<int, int>>(is_first ? 2 : 1),
                                          "optional"_k = is_first ? std::optional(Tensor<int, 2>(1, 2)) : std::nullopt,
                                          "tensor"_k = Tensor<int, 2>(1, is_first ? 2 : 3)));
                      },
                      host_devices(3)};
  const auto result = model(count_to(6));
  CHECK(result["map"_k] == std::map<std::string, int>{{"a", 1}});
  CHECK(result["trees"_k].size() == 2);
  REQUIRE(result["optional"_k].has_value());
  CHECK(result["tensor"_k].extents() == fanout::Extents<2>{1, 2});
}

TEST_CASE("first passes over shards without rows, unless none has rows") {
  ParallelModel model{
      [](Context auto& ctx, View<const int, 1> x) {
        return std::tuple{first(ctx.rank()), first(x), first(std::map<std::size_t, int>{{ctx.rank(), 1}})};
      },
      host_devices(3), fanout::Options{.split = AllOnSecond{}}};
  const auto [rank, view, map] = model(count_to(4));
  CHECK(rank == 1);
  CHECK(view.size() == 4);
  CHECK(map == std::map<std::size_t, int>{{1, 1}});
  const auto [rank_of_none, view_of_none, map_of_none] = model(Tensor<int, 1>(0));
  CHECK(rank_of_none == 0);
  CHECK(view_of_none.size() == 0);
  CHECK(map_of_none.begin()->first == 0);
}

TEST_CASE("a rule inside first combines all shards, whose structure around it must agree") {
  struct Totals {
    fanout::Sum<int> rows;
    fanout::PerShard<int> each;
    float scale;
  };
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x, bool wrong) {
                        const int rows = static_cast<int>(x.extent(0));
                        const auto scale = static_cast<float>(ctx.rank());
                        std::map<int, decltype(psum(rows))> map{{wrong && ctx.rank() == 1 ? 2 : 1, psum(rows)}};
                        return first(std::tuple{Totals{rows, rows, scale}, map, scale, first(rows)});
                      },
                      host_devices(2)};
  const auto [totals, map, scale, rows] = model(count_to(5), false);
  CHECK(totals.rows == 5);
  CHECK(totals.each.size() == 2);
  CHECK(totals.scale == 0);
  CHECK(map.at(1) == 5);
  CHECK(scale == 0);
  CHECK(rows == 3);
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5), true); }), "output[1]", "no 1 and also 2",
             "shard 1 on host:1, rows [3, 5)"));
}

TEST_CASE("first inside another rule is first") {
  ParallelModel model{[](View<const int, 1> x) {
                        return psum(std::pair{1, first(std::pair{x[0], std::string("text")})});
                      },
                      host_devices(2)};
  CHECK(model(count_to(4)) == std::pair{2, std::pair{0, std::string("text")}});
}

TEST_CASE("a First member of a struct keeps the first shard's value") {
  struct Report {
    Tensor<int, 1> rows;
    fanout::First<std::map<int, std::string>> names;
    fanout::First<float> scale;
  };
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        const int rank = static_cast<int>(ctx.rank());
                        return Report{Tensor<int, 1>(x), std::map<int, std::string>{{rank, "name"}}, 0.5F};
                      },
                      host_devices(2)};
  const Report report = model(count_to(5));
  CHECK(report.rows.size() == 5);
  CHECK(report.names.value == std::map<int, std::string>{{0, "name"}});
  CHECK(report.scale == 0.5F);
}
