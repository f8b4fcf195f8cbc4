// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
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
using fanout::gathered_t;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::count_to;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::values;

namespace {

const std::vector<int> five_values{0, 1, 2, 3, 4};

/// What leaves a variant without a value that was to hold it as a tensor.
struct Thrower {
  operator Tensor<int, 1>() const { throw 1; }
};

struct Detection {
  std::variant<std::monostate, Tensor<int, 1>> found;
  fanout::Mean<float> loss;
};

}  // namespace

TEST_CASE("a variant is gathered to a variant of its gathered alternatives") {
  using Variant = std::variant<int, View<const int, 1>, std::pair<std::string, int>, std::monostate>;
  static_assert(std::is_same_v<gathered_t<Variant>,
                               std::variant<Tensor<int, 1>, Tensor<int, 1>,
                                            std::pair<std::vector<std::string>, Tensor<int, 1>>, std::monostate>>);
  for (int devices = 1; devices <= 3; ++devices) {
    CAPTURE(devices);
    ParallelModel model{[](View<const int, 1> x, int which) -> Variant {
                          switch (which) {
                            case 0:
                              return x[0];
                            case 1:
                              return x;
                            case 2:
                              return std::pair(std::string("from ") + std::to_string(x[0]), x[0]);
                            default:
                              return {std::monostate()};
                          }
                        },
                        host_devices(devices)};
    const auto number = model(count_to(5), 0);
    REQUIRE(number.index() == 0);
    CHECK(std::get<0>(number).size() == static_cast<std::size_t>(devices));
    CHECK(std::get<0>(number)[0] == 0);
    const auto rows = model(count_to(5), 1);
    REQUIRE(rows.index() == 1);
    CHECK(values(std::get<1>(rows)) == five_values);
    const auto pair = model(count_to(5), 2);
    REQUIRE(pair.index() == 2);
    CHECK(std::get<2>(pair).first[0] == "from 0");
    CHECK(std::get<2>(pair).second.size() == static_cast<std::size_t>(devices));
    CHECK(model(count_to(5), 3).index() == 3);
  }
}

TEST_CASE("std::monostate is gathered to itself, also alone and under psum") {
  static_assert(std::is_same_v<gathered_t<std::monostate>, std::monostate>);
  static_assert(std::is_same_v<gathered_t<decltype(fanout::psum(std::monostate()))>, std::monostate>);
  ParallelModel model{[](View<const int, 1>) { return std::pair{std::monostate(), 1}; }, host_devices(2)};
  const auto [nothing, ones] = model(count_to(5));
  static_assert(std::is_same_v<decltype(nothing), const std::monostate>);
  CHECK(ones.size() == 2);
}

TEST_CASE("variants in variants, lists, maps, dicts and optionals are gathered where they stand") {
  using Inner = std::variant<std::monostate, std::vector<int>>;
  ParallelModel model{[](View<const int, 1> x) {
                        const Inner rows = std::vector<int>(x.begin(), x.end());
                        return dict("nested"_k = std::variant<std::string, Inner>(rows),
                                    "list"_k = fanout::each(std::vector<Inner>{rows, {}, rows}),
                                    "map"_k = std::map<std::string, Inner>{{"a", rows}},
                                    "maybe"_k = std::optional<Inner>(rows));
                      },
                      host_devices(3)};
  const auto result = model(count_to(5));
  CHECK(std::get<1>(std::get<1>(result["nested"_k])) == five_values);
  REQUIRE(result["list"_k].size() == 3);
  CHECK(result["list"_k][1].index() == 0);
  CHECK(std::get<1>(result["list"_k][2]) == five_values);
  CHECK(std::get<1>(result["map"_k].at("a")) == five_values);
  CHECK(std::get<1>(result["maybe"_k].value()) == five_values);
}

TEST_CASE("a vector of variants of numbers is an array, one a row") {
  using Number = std::variant<int, float>;
  static_assert(std::is_same_v<gathered_t<std::vector<Number>>, std::vector<Number>>);
  ParallelModel model{
      [](std::span<const Number> numbers) { return std::vector<Number>(numbers.begin(), numbers.end()); },
      host_devices(2)};
  const std::vector<Number> numbers{1, 2.5F, 3};
  CHECK(model(numbers) == numbers);
}

TEST_CASE("psum and pmean go into the alternative that is held") {
  using Variant = std::variant<std::monostate, float, Tensor<float, 1>>;
  static_assert(std::is_same_v<gathered_t<decltype(fanout::psum(Variant()))>, Variant>);
  ParallelModel model{[](View<const int, 1> x) { return fanout::psum(Variant(static_cast<float>(x.size()))); },
                      host_devices(2)};
  CHECK(std::get<float>(model(count_to(5))) == 5);
}

TEST_CASE("a struct holds a variant that is gathered to itself") {
  ParallelModel model{[](View<const int, 1> x, bool some) {
                        return some ? Detection{Tensor<int, 1>(x), 1.0F} : Detection{std::monostate(), 1.0F};
                      },
                      host_devices(2)};
  const Detection detection = model(count_to(5), true);
  CHECK(values(std::get<1>(detection.found)) == five_values);
  CHECK(model(count_to(5), false).found.index() == 0);
}

TEST_CASE("outputs and tensors in variants are gathered without a copy") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        auto output = fanout::output<int>(ctx);
                        for (std::size_t i = 0; i < x.size(); ++i) output[i] = x[i];
                        using Variant = std::variant<std::string, decltype(output)>;
                        return std::pair{Variant(output), reinterpret_cast<std::uintptr_t>(output.data())};
                      },
                      host_devices(2)};
  const auto [variant, addresses] = model(count_to(5));
  CHECK(values(std::get<1>(variant)) == five_values);
  CHECK(reinterpret_cast<std::uintptr_t>(std::get<1>(variant).data()) == addresses[0]);
}

TEST_CASE("variants with different alternatives are refused with place, shards, rows and alternatives") {
  using Variant = std::variant<std::monostate, std::vector<int>, double>;
  ParallelModel model{
      [](Context auto& ctx, View<const int, 1>, unsigned odd) {
        return std::tuple{0, dict("image"_k = ctx.rank() == odd ? Variant(2.5) : Variant(std::vector{1}))};
      },
      host_devices(3)};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5), 2U); }),
             "replicas returned variants with different alternatives", "output[1].image",
             "expected alternative 1, std::vector<int>", "shard 0 on host:0, rows [0, 2)",
             "found alternative 2, double", "shard 2 on host:2, rows [4, 5)"));
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5), 0U); }), "output[1].image",
             "expected alternative 2, double", "found alternative 1, std::vector<int>", "shard 1 on host:1"));
  CHECK(std::get<1>(std::get<1>(model(count_to(5), 7U))["image"_k]) == std::vector{1, 1, 1});
}

TEST_CASE("alternatives of one type are told apart by their index") {
  using Variant = std::variant<int, int>;
  ParallelModel model{[](Context auto& ctx, View<const int, 1>, bool differ) {
                        return differ && ctx.rank() == 1 ? Variant(std::in_place_index<1>, 5)
                                                         : Variant(std::in_place_index<0>, 5);
                      },
                      host_devices(2)};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(5), true); }), "alternative 0, int",
             "alternative 1, int"));
  CHECK(model(count_to(5), false).index() == 0);
}

TEST_CASE("mismatches inside an alternative are refused with their place") {
  using Variant = std::variant<int, std::pair<int, Tensor<int, 2>>>;
  ParallelModel model{[](Context auto& ctx, View<const int, 1>) {
                        return std::pair{0, Variant(std::pair(1, Tensor<int, 2>(1, ctx.rank() == 0 ? 2 : 3)))};
                      },
                      host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model(count_to(5)); }), "output[1][1]"));
}

TEST_CASE("a variant without a value is refused, with one device too, and whichever shard returned it") {
  using Maybe = std::variant<std::vector<int>, Tensor<int, 1>>;
  for (int devices = 1; devices <= 3; ++devices) {
    for (std::size_t bad = 0; bad < static_cast<std::size_t>(devices); ++bad) {
      CAPTURE(devices);
      CAPTURE(bad);
      ParallelModel model{[bad](Context auto& ctx, View<const int, 1>) {
                            Maybe variant = std::vector<int>{1};
                            try {
                              if (ctx.rank() == bad) variant.emplace<1>(Thrower());
                            } catch (int) {
                            }
                            return dict("maybe"_k = variant);
                          },
                          host_devices(devices)};
      CHECK(says(message_of<fanout::StructureMismatch>([&] { model(count_to(6)); }),
                 "a replica returned a variant without a value", "at output.maybe", "expected one of its alternatives",
                 "found none from shard " + std::to_string(bad) + " on host:" + std::to_string(bad),
                 "assign a value before it is returned"));
    }
  }
}
