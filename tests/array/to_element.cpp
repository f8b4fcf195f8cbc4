// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include <fanout/array/to_element.hpp>
#include <fanout/tree/key.hpp>

#include "memory/remote_memory.hpp"

using fanout::Tensor;
using fanout::to;
using namespace fanout::literals;

namespace {

template <class T>
struct Layer {
  Tensor<T, 2> weight;
  T bias;
  int steps;
  std::string name;
};

template <class T>
struct Net {
  std::vector<Layer<T>> layers;
};

}  // namespace

TEST_CASE("an array is converted whatever its elements are") {
  const auto x = fanout::tensor<float>({{1.5, 2}, {3, 4}});
  const auto wide = to<double>(x);
  static_assert(std::is_same_v<decltype(wide), const Tensor<double, 2>>);
  CHECK(wide == fanout::tensor<double>({{1.5, 2}, {3, 4}}));
  CHECK(to<int>(x.row(0)) == fanout::tensor<int>({1, 2}));
  CHECK(to<float>(fanout::tensor<int>({7})) == fanout::tensor<float>({7}));
  const auto same = to<float>(x);
  CHECK(same == x);
  CHECK(same.data() != x.data());
  CHECK(to<int>(2.5) == 2);
}

TEST_CASE("floating-point arrays and numbers in a tree are converted, and nothing else") {
  const auto x = fanout::tensor<float>({1.5F});
  const auto tree = std::tuple{x, 2.5F, 3, true, std::string("a"), fanout::tensor<int>({4}), std::vector<float>{5}};
  const auto wide = to<double>(tree);
  static_assert(std::is_same_v<decltype(wide), const std::tuple<Tensor<double, 1>, double, int, bool, std::string,
                                                                Tensor<int, 1>, std::vector<double>>>);
  CHECK(std::get<0>(wide)[0] == 1.5);
  CHECK(std::get<1>(wide) == 2.5);
  CHECK(std::get<4>(wide) == "a");
  CHECK(std::get<5>(wide)[0] == 4);
  CHECK(std::get<6>(wide) == std::vector<double>{5});

  const auto map = to<double>(std::map<std::string, std::vector<Tensor<float, 1>>>{{"w", {x, x}}});
  static_assert(std::is_same_v<decltype(map), const std::map<std::string, std::vector<Tensor<double, 1>>>>);
  CHECK(map.at("w")[1] == fanout::tensor<double>({1.5}));

  const auto dict = to<double>(fanout::dict("w"_k = x, "n"_k = 3));
  CHECK(dict["w"_k] == fanout::tensor<double>({1.5}));
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(dict["n"_k])>, int>);

  const std::optional<Tensor<float, 1>> some = x;
  CHECK(to<double>(some)->size() == 1);
  CHECK_FALSE(to<double>(std::optional<Tensor<float, 1>>()).has_value());
  const std::variant<int, Tensor<float, 1>> held = x;
  CHECK(std::get<1>(to<double>(held)) == fanout::tensor<double>({1.5}));
  CHECK(to<float>(std::array{1.5, 2.5}) == std::array{1.5F, 2.5F});
}

TEST_CASE("a struct that is a template of its element type becomes one of the other type") {
  const Net<float> net{{Layer<float>{fanout::tensor<float>({{1, 2}}), 0.5F, 3, "first"}}};
  const auto wide = to<double>(net);
  static_assert(std::is_same_v<decltype(wide), const Net<double>>);
  CHECK(wide.layers[0].weight == fanout::tensor<double>({{1, 2}}));
  CHECK(wide.layers[0].bias == 0.5);
  CHECK(wide.layers[0].steps == 3);
  CHECK(wide.layers[0].name == "first");
}

TEST_CASE("an array in another memory stays there") {
  const auto x = fanout::tensor<float>({1.5F, 2});
  const fanout::backend::Memory there = fanout_test::RemoteMemory::memory(1);
  const auto wide = to<double>(to(x, there));
  CHECK(wide.space() == there.space);
  CHECK(fanout::to_host(wide) == fanout::tensor<double>({1.5, 2}));
  CHECK(to<float>(to(x, there)).space() == there.space);
}
