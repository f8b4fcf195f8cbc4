// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::Context;
using fanout::dict;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::count_to;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::values;

namespace {

const std::vector<int> five_numbers{0, 1, 2, 3, 4};

}  // namespace

TEST_CASE("tuples, pairs and arrays are gathered element by element") {
  ParallelModel model{[](View<const int, 1> x) {
                        const std::vector<int> all(x.begin(), x.end());
                        return std::tuple{std::pair{x, x[0]}, std::array{all, all}, std::array<int, 2>{x[0], 7}};
                      },
                      host_devices(2)};
  const auto [pair, array, numbers] = model(count_to(5));
  static_assert(std::is_same_v<decltype(pair), const std::pair<Tensor<int, 1>, Tensor<int, 1>>>);
  static_assert(std::is_same_v<decltype(array), const std::array<std::vector<int>, 2>>);
  static_assert(std::is_same_v<decltype(numbers), const std::array<Tensor<int, 1>, 2>>);
  CHECK(values(pair.first) == five_numbers);
  CHECK(values(pair.second) == std::vector{0, 3});
  CHECK(array[1] == five_numbers);
  CHECK(values(numbers[1]) == std::vector{7, 7});
}

TEST_CASE("dicts are gathered entry by entry and keep their keys") {
  ParallelModel model{[](View<const int, 1> x) { return dict("rows"_k = x, "inner"_k = dict("first"_k = x[0])); },
                      host_devices(2)};
  const auto result = model(count_to(5));
  CHECK(values(result["rows"_k]) == five_numbers);
  CHECK(values(result["inner"_k]["first"_k]) == std::vector{0, 3});
}

TEST_CASE("maps are gathered key by key, in whatever order each shard holds them") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        std::map<std::string, View<const int, 1>, std::greater<>> ordered{{"a", x}, {"b", x}};
                        std::unordered_map<int, std::vector<int>> hashed;
                        for (int i = 0; i < 40; ++i) {
                          const int key = ctx.rank() == 0 ? i : 39 - i;
                          hashed[key] = {key, x[0]};
                        }
                        return std::pair{ordered, hashed};
                      },
                      host_devices(2)};
  const auto [ordered, hashed] = model(count_to(5));
  static_assert(std::is_same_v<decltype(ordered), const std::map<std::string, Tensor<int, 1>, std::greater<>>>);
  static_assert(std::is_same_v<decltype(hashed), const std::unordered_map<int, std::vector<int>>>);
  REQUIRE(ordered.size() == 2);
  CHECK(ordered.begin()->first == "b");
  CHECK(values(ordered.at("a")) == five_numbers);
  REQUIRE(hashed.size() == 40);
  for (const auto& [key, vector] : hashed) CHECK(vector == std::vector{key, 0, key, 3});
}

TEST_CASE("vectors of trees are gathered tree by tree, and optionals if they are there") {
  ParallelModel model{[](View<const int, 1> x, bool some) {
                        std::vector<std::pair<int, View<const int, 1>>> views(3, {7, x});
                        std::vector<std::optional<std::pair<int, View<const int, 1>>>> pairs(2);
                        pairs[1].emplace(x[0], x);
                        return std::tuple{views, pairs, some ? std::optional(x) : std::nullopt};
                      },
                      host_devices(2)};
  {
    const auto [views, pairs, optional] = model(count_to(5), true);
    static_assert(std::is_same_v<decltype(optional), const std::optional<Tensor<int, 1>>>);
    REQUIRE(views.size() == 3);
    CHECK(values(views[2].first) == std::vector{7, 7});
    CHECK(values(views[2].second) == five_numbers);
    REQUIRE(pairs.size() == 2);
    CHECK_FALSE(pairs[0].has_value());
    REQUIRE(pairs[1].has_value());
    CHECK(values(pairs[1]->first) == std::vector{0, 3});
    CHECK(values(pairs[1]->second) == five_numbers);
    REQUIRE(optional.has_value());
    CHECK(values(*optional) == five_numbers);
  }
  CHECK_FALSE(std::get<2>(model(count_to(5), false)).has_value());
}

TEST_CASE("spans of trees are gathered to vectors, and their elements stay unchanged") {
  struct Model {
    std::vector<Tensor<int, 1>> state{count_to(2), count_to(3)};
    std::vector<std::pair<Tensor<int, 1>, std::string>> pairs{{count_to(1), "a"}};
    auto forward(View<const int, 1>) const {
      return std::tuple{std::span(state), std::span<const std::pair<Tensor<int, 1>, std::string>, 1>(pairs)};
    }
  };
  for (int devices = 1; devices <= 2; ++devices) {
    ParallelModel model{Model{}, host_devices(devices)};
    for (int run = 0; run < 2; ++run) {
      const auto [tensors, pairs] = model(count_to(5));
      static_assert(std::is_same_v<decltype(tensors), const std::vector<Tensor<int, 1>>>);
      static_assert(
          std::is_same_v<decltype(pairs), const std::vector<std::pair<Tensor<int, 1>, std::vector<std::string>>>>);
      REQUIRE(tensors.size() == 2);
      CHECK(tensors[1].size() == 3 * static_cast<std::size_t>(devices));
      CHECK(pairs.at(0).second == std::vector<std::string>(static_cast<std::size_t>(devices), "a"));
    }
  }
}

// A span that is an array leaf, too, is not made around what is gone with the call.
static_assert(std::is_same_v<fanout::gathered_t<decltype(fanout::first(std::tuple(std::span<const int>())))>,
                             std::tuple<std::vector<int>>>);

TEST_CASE("spans of trees of different lengths are refused") {
  const std::vector<Tensor<int, 1>> state{count_to(2), count_to(3)};
  ParallelModel model{
      [&state](Context auto& ctx, View<const int, 1>) { return std::span(state).first(ctx.rank() == 0 ? 1 : 2); },
      host_devices(2)};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5)); }), "output", "1 trees", "found 2"));
}

TEST_CASE("empty containers are gathered to themselves") {
  ParallelModel model{
      [](View<const int, 1>) {
        return std::tuple{
            std::tuple<>{},      dict(), std::vector<std::vector<int>>{}, std::vector<int>{}, std::map<int, int>{},
            std::array<int, 0>{}};
      },
      host_devices(2)};
  const auto result = model(count_to(5));
  CHECK(std::get<2>(result).empty());
  CHECK(std::get<3>(result).empty());
  CHECK(std::get<4>(result).empty());
}

TEST_CASE("maps with different keys are refused with place, shards, rows and the keys that differ") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x, int wrong) {
                        std::map<std::string, int> map{{"both", x[0]}};
                        if (wrong > 0 && ctx.rank() == 1) map.emplace("late", 1);
                        if (wrong > 1 && ctx.rank() == 0) map.emplace("early", 1);
                        return std::tuple{0, dict("image"_k = map)};
                      },
                      host_devices(2)};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5), 1); }), "different keys", "output[1].image",
             "shard 0 on host:0, rows [0, 3)", "also \"late\"", "shard 1 on host:1, rows [3, 5)", "reduce(x, f)"));
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5), 2); }), "output[1].image", "no \"early\"",
             "also \"late\"", "shard 1"));
  CHECK(values(std::get<1>(model(count_to(5), 0))["image"_k].at("both")) == std::vector{0, 3});
}

TEST_CASE("keys of other types are named by their values") {
  ParallelModel numbers{[](Context auto& ctx, View<const int, 1>) {
                          return std::map<int, int>{{ctx.rank() == 0 ? 5 : 6, 1}};
                        },
                        host_devices(2)};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { numbers(count_to(5)); }), "no 5", "also 6"));
  ParallelModel pairs{[](Context auto& ctx, View<const int, 1>) {
                        return std::map<std::pair<int, int>, Tensor<int, 2>>{
                            {{0, 0}, Tensor<int, 2>(1, 1)}, {{1, 2}, Tensor<int, 2>(1, ctx.rank() == 0 ? 2 : 3)}};
                      },
                      host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { pairs(count_to(5)); }), "output[(1, 2)]"));
}

TEST_CASE("vectors of different lengths are refused") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x, bool wrong) {
                        return std::pair{0, std::vector<View<const int, 1>>(wrong && ctx.rank() == 1 ? 2 : 3, x)};
                      },
                      host_devices(2)};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5), true); }), "output[1]", "3 trees",
             "shard 0 on host:0", "found 2", "shard 1 on host:1, rows [3, 5)"));
  CHECK(model(count_to(5), false).second.size() == 3);
}

TEST_CASE("an optional with a value on only some shards is refused") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x, unsigned without) {
                        return dict("maybe"_k = ctx.rank() == without ? std::nullopt : std::optional(x[0]));
                      },
                      host_devices(2)};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5), 1U); }), "output.maybe", "expected a value",
             "found none", "shard 1 on host:1, rows [3, 5)"));
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5), 0U); }), "output.maybe", "expected none",
             "found a value"));
  CHECK(values(*model(count_to(5), 7U)["maybe"_k]) == std::vector{0, 3});
}

TEST_CASE("references in a tuple are copied and stay unchanged") {
  struct Model {
    Tensor<int, 1> state = count_to(3);
    std::vector<int> numbers{1, 2};
    auto forward(View<const int, 1>) const { return std::tie(state, numbers); }
  };
  ParallelModel model{Model{}, host_devices(1)};
  for (int run = 0; run < 2; ++run) {
    const auto [state, numbers] = model(count_to(2));
    static_assert(std::is_same_v<decltype(state), const Tensor<int, 1>>);
    CHECK(values(state) == std::vector{0, 1, 2});
    CHECK(numbers == std::vector{1, 2});
    CHECK(state.data() != model.model().state.data());
  }
}

TEST_CASE("const elements are gathered by copy") {
  ParallelModel model{[](View<const int, 1> x) {
                        const Tensor<int, 1> copy(x);
                        return std::pair<const Tensor<int, 1>, std::optional<const int>>{copy, x[0]};
                      },
                      host_devices(2)};
  const auto [tensor, first] = model(count_to(5));
  CHECK(values(tensor) == five_numbers);
  CHECK(values(first.value()) == std::vector{0, 3});
}
