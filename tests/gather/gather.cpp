// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::Context;
using fanout::dict;
using fanout::gathered_t;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

Tensor<float, 2> numbered(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> tensor(rows, columns);
  float next = 0;
  for (float& x : tensor) x = next++;
  return tensor;
}

bool same(const Tensor<float, 2>& a, const Tensor<float, 2>& b) {
  return a.extents() == b.extents() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Everything below everything, five levels down.
struct Nested {
  auto forward(Context auto& ctx, View<const float, 2> x, std::size_t trailing) const {
    auto noise = fanout::output<float>(ctx, trailing);
    auto image = fanout::output<float>(ctx, x.extent(1));
    for (std::size_t i = 0; i < x.size(); ++i) image.data()[i] = 2 * x.data()[i];
    for (std::size_t i = 0; i < noise.size(); ++i) noise.data()[i] = -1;

    std::map<std::string, std::optional<std::vector<Tensor<float, 2>>>> map;
    map["some"].emplace(2, Tensor<float, 2>(image));
    map["none"] = std::nullopt;
    std::unordered_map<int, std::array<std::pair<int, std::string>, 2>> hashed;
    hashed[3] = {std::pair{static_cast<int>(ctx.rank()), "a"}, std::pair{7, "b"}};
    return std::tuple{
        image, dict("image"_k = dict("output"_k = image, "noise"_k = noise), "deep"_k = map,
                    "hashed"_k = fanout::each(std::vector{hashed, hashed}), "rows"_k = fanout::psum(x.extent(0)))};
  }
};

}  // namespace

TEST_CASE("a tree of all kinds of nodes is gathered, five levels deep") {
  ParallelModel model{Nested{}, host_devices(3)};
  const auto x = numbered(7, 2);
  auto twice = numbered(7, 2);
  for (float& value : twice) value *= 2;
  for (int run = 0; run < 3; ++run) {
    const auto [image, extras] = model(x, std::size_t{4});
    CHECK(same(image, twice));
    CHECK(same(extras["image"_k]["output"_k], twice));
    CHECK(extras["image"_k]["noise"_k].extents() == fanout::Extents<2>{7, 4});
    CHECK(extras["image"_k]["noise"_k](6, 3) == -1);
    const auto& deep = extras["deep"_k];
    REQUIRE(deep.size() == 2);
    CHECK_FALSE(deep.at("none").has_value());
    REQUIRE(deep.at("some").has_value());
    REQUIRE(deep.at("some")->size() == 2);
    CHECK(same(deep.at("some")->at(0), twice));
    CHECK(same(deep.at("some")->at(1), twice));
    REQUIRE(extras["hashed"_k].size() == 2);
    const auto& [first, second] = extras["hashed"_k][1].at(3);
    CHECK(first.first[2] == 2);
    CHECK(second.first[0] == 7);
    CHECK(second.second == std::vector<std::string>{"b", "b", "b"});
    CHECK(extras["rows"_k] == 7);
  }
}

TEST_CASE("a leaf deep in a tree is named with both shards and both extents, and the model stays usable") {
  ParallelModel model{[](Context auto& ctx, View<const float, 2>, bool wrong) {
                        auto noise = fanout::output<float>(ctx, wrong && ctx.rank() == 1 ? 9 : 2);
                        for (float& x : noise) x = 1;
                        return std::tuple{1, dict("image"_k = dict("noise"_k = noise))};
                      },
                      host_devices(2)};
  const auto x = numbered(30, 5);
  for (int run = 0; run < 3; ++run) {
    CHECK(says(message_of<fanout::ShapeMismatch>([&] { model(x, true); }), "output[1].image.noise", "[15, 2]",
               "shard 0 on host:0, rows [0, 15)", "[15, 9]", "shard 1 on host:1, rows [15, 30)"));
    const auto good = model(x, false);
    CHECK(std::get<1>(good)["image"_k]["noise"_k].extents() == fanout::Extents<2>{30, 2});
    CHECK(std::get<1>(good)["image"_k]["noise"_k](29, 1) == 1);
  }
}

TEST_CASE("gathered_t says what a result becomes") {
  static_assert(std::is_same_v<gathered_t<void>, void>);
  static_assert(std::is_same_v<gathered_t<float>, Tensor<float, 1>>);
  static_assert(std::is_same_v<gathered_t<const View<const float, 3>&>, Tensor<float, 3>>);
  static_assert(std::is_same_v<gathered_t<std::vector<std::string>>, std::vector<std::string>>);
  static_assert(
      std::is_same_v<gathered_t<std::map<int, std::optional<bool>>>, std::map<int, std::optional<Tensor<bool, 1>>>>);
  static_assert(std::is_same_v<gathered_t<std::pair<std::string, std::vector<Tensor<int, 2>>>>,
                               std::pair<std::vector<std::string>, std::vector<Tensor<int, 2>>>>);
  static_assert(std::is_same_v<gathered_t<decltype(fanout::pmean(1.0F))>, float>);
}

TEST_CASE("forward may return nothing") {
  std::array<int, 3> rows{};
  ParallelModel model{
      [&rows](Context auto& ctx, View<const float, 2> x) { rows[ctx.rank()] = static_cast<int>(x.extent(0)); },
      host_devices(3)};
  static_assert(std::is_void_v<decltype(model(numbered(5, 2)))>);
  model(numbered(5, 2));
  CHECK(rows == std::array{2, 2, 1});
}

TEST_CASE("a reference that forward returns is copied and left as it is") {
  struct Model {
    Tensor<float, 2> weight = numbered(2, 2);
    const Tensor<float, 2>& forward(View<const float, 2>) const { return weight; }
  };
  for (const int devices : {1, 2}) {
    ParallelModel model{Model{}, host_devices(devices)};
    CHECK(model(numbered(4, 1)).extent(0) == 2 * static_cast<std::size_t>(devices));
    CHECK(model(numbered(4, 1))(1, 1) == 3);
    CHECK(same(model.model().weight, numbered(2, 2)));
  }
}

TEST_CASE("results stand in row order and are bitwise the same in every run") {
  ParallelModel model{[](View<const float, 2> x) {
                        std::vector<float> roots;
                        float total = 0;
                        for (const float value : x) {
                          roots.push_back(1.0F / (1.0F + value));
                          total += roots.back();
                        }
                        return std::pair{roots, fanout::pmean(total)};
                      },
                      host_devices(5)};
  const auto x = numbered(23, 3);
  const auto [roots, mean] = model(x);
  REQUIRE(roots.size() == 69);
  for (std::size_t i = 0; i < 69; ++i) CHECK(roots[i] == 1.0F / (1.0F + static_cast<float>(i)));
  for (int run = 0; run < 50; ++run) {
    const auto [again, mean_again] = model(x);
    CHECK(again == roots);
    CHECK(std::memcmp(&mean_again, &mean, sizeof mean) == 0);
  }
}

TEST_CASE("shard results can be gathered without a model") {
  const fanout::Plan plan{{.rows = {0, 1}, .device = 1}, {.rows = {1, 3}, .device = 0}};
  const fanout::DeviceId devices[] = {{.kind = "host", .index = 4}, {.kind = "host", .index = 0}};
  const std::pair<int, std::vector<int>> values[] = {{4, {1}}, {5, {2, 3}}};
  fanout::ShardResults<std::pair<int, std::vector<int>>> pieces(2, false);
  pieces.set(0, values[0]);
  pieces.set(1, values[1]);
  const auto [scalars, rows] = fanout::gather(pieces, {plan, devices, fanout::backend::Memory{}});
  CHECK(scalars[0] == 4);
  CHECK(scalars[1] == 5);
  CHECK(rows == std::vector{1, 2, 3});
  CHECK(values[1].second == std::vector{2, 3});
}

TEST_CASE("device ids are gathered like numbers, and tell which device ran each shard") {
  ParallelModel model{[](Context auto& ctx, View<const float, 1>) { return ctx.device().id(); }, host_devices(3)};
  const Tensor<fanout::DeviceId, 1> ran = model(Tensor<float, 1>(5));
  CHECK(ran.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(ran[i] == model.devices()[i].id());
}

TEST_CASE("a deque of trees is gathered to a deque") {
  ParallelModel model{[](View<const float, 1> x) { return std::deque<Tensor<float, 1>>(2, Tensor<float, 1>(x)); },
                      host_devices(2)};
  const std::deque<Tensor<float, 1>> columns = model(Tensor<float, 1>(5));
  CHECK(columns.size() == 2);
  CHECK(columns[1].size() == 5);
}

TEST_CASE("an array in another memory is refused with its place, and the model works afterwards") {
  ParallelModel model{[](View<const float, 1> x, bool elsewhere) {
                        const fanout::MemorySpace toy{{.kind = "toy", .index = 1}};
                        const View<const float, 1> shown(x.data(), x.extents(), elsewhere ? toy : x.space());
                        return std::tuple{shown, fanout::psum(x.extent(0))};
                      },
                      host_devices(2)};
  const std::string message = message_of<fanout::DeviceMismatch>([&] { (void)model(Tensor<float, 1>(4), true); });
  CHECK(says(message, "output[0]"));
  CHECK(says(message, "host memory"));
  CHECK(says(message, "the memory of toy:1 from shard 0 on host:0, rows [0, 2)"));
  CHECK(std::get<1>(model(Tensor<float, 1>(4), false)) == 4);
}
