// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every type of element and of leaf, in and out: what goes in by rows comes out by rows.
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/fanout.hpp>

using namespace fanout::literals;
using fanout::Context;
using fanout::dict;
using fanout::gathered_t;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

namespace {

/// Numbers of 16 bits that are only stored.
struct Half {
  std::uint16_t bits;
  friend bool operator==(Half, Half) = default;
};
struct Bfloat16 {
  std::uint16_t bits;
  friend bool operator==(Bfloat16, Bfloat16) = default;
};
enum class Colour : unsigned char { red, green, blue };
enum Direction { up, down };
struct Box {
  float left, right;
  Colour colour;
  friend bool operator==(const Box&, const Box&) = default;
};

}  // namespace

template <>
inline constexpr bool fanout::enable_scalar<Bfloat16> = true;

namespace {

/// Elements whose bytes all differ from their neighbours', as far as a T takes any bytes.
template <class T, std::size_t R>
Tensor<T, R> counted(fanout::Extents<R> extents) {
  auto tensor = Tensor<T, R>::uninitialized(extents, {});
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      tensor.data()[i] = i % 3 == 1;
    } else {
      unsigned char bytes[sizeof(T)];
      for (std::size_t k = 0; k < sizeof(T); ++k) bytes[k] = static_cast<unsigned char>(7 * i + k);
      std::memcpy(static_cast<void*>(tensor.data() + i), bytes, sizeof(T));
    }
  }
  return tensor;
}

template <class T, std::size_t R>
bool same(const Tensor<T, R>& a, const Tensor<T, R>& b) {
  return a.extents() == b.extents() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Gives its rows back as they came, and as a copy.
struct Rows {
  template <class T, std::size_t R>
  auto forward(View<const T, R> rows) const {
    return std::pair{rows, Tensor<T, R>(rows)};
  }
  template <class T>
  auto forward(std::span<const T> rows) const {
    return std::pair{rows, std::vector<T>(rows.begin(), rows.end())};
  }
};

/// Rows of a tensor that come back as a view and as a tensor are gathered to the whole.
template <class T, std::size_t R>
void check_round_trip(fanout::Extents<R> extents) {
  CAPTURE(R);
  const auto x = counted<T, R>(extents);
  for (int devices = 1; devices <= 3; ++devices) {
    const ParallelModel model{Rows{}, host_devices(devices)};
    const auto [view, copy] = model(x);
    static_assert(std::is_same_v<decltype(view), const Tensor<T, R>>);
    CHECK(same(view, x));
    CHECK(same(copy, x));
  }
}

/// A vector of rows, and a span, come back as the vector.
template <class T>
void check_vector(const std::vector<T>& x) {
  for (int devices = 1; devices <= 3; ++devices) {
    const ParallelModel model{Rows{}, host_devices(devices)};
    CHECK(model(x) == std::pair{x, x});
    CHECK(model(std::span<const T>(x)) == std::pair{x, x});
  }
}

}  // namespace

TEST_CASE("tensors and views of every rank come back bit by bit") {
  check_round_trip<float, 1>({5});
  check_round_trip<float, 2>({5, 3});
  check_round_trip<float, 3>({5, 0, 2});
  check_round_trip<float, 4>({5, 1, 2, 3});
  check_round_trip<float, 6>({0, 1, 2, 1, 2, 1});
}

TEST_CASE("tensors and views of every type of element come back bit by bit") {
  check_round_trip<double, 3>({5, 2, 3});
  check_round_trip<std::int8_t, 3>({5, 2, 3});
  check_round_trip<std::uint64_t, 3>({5, 2, 3});
  check_round_trip<bool, 3>({5, 2, 3});
  check_round_trip<std::complex<double>, 3>({5, 2, 3});
  check_round_trip<Half, 3>({5, 2, 3});
  check_round_trip<Bfloat16, 3>({5, 2, 3});
  check_round_trip<Colour, 3>({5, 2, 3});
  check_round_trip<Box, 3>({5, 2, 3});
  check_round_trip<std::array<std::uint16_t, 3>, 3>({5, 2, 3});
}

TEST_CASE("vectors and spans of trivially copyable elements, of strings and of structs come back") {
  check_vector<float>({1, 2, 3, 4, 5});
  check_vector<Colour>({Colour::blue, Colour::red, Colour::green});
  check_vector<std::complex<float>>({{1, 2}, {3, 4}});
  check_vector<Half>({{1}, {2}, {3}, {4}});
  check_vector<Box>({{0, 1, Colour::red}, {1, 2, Colour::blue}, {2, 3, Colour::green}});
  check_vector<std::array<int, 2>>({{1, 2}, {3, 4}, {5, 6}});
  check_vector<std::optional<int>>({1, std::nullopt, 3});
  check_vector<std::variant<int, float>>({1, 2.5F, 3});
  check_vector<std::monostate>({{}, {}});
  check_vector<std::string>({"a", "", "a text that is too long to be stored in place"});
  check_vector<std::string>({});
}

TEST_CASE("a span of bools comes back as a vector") {
  static_assert(std::is_same_v<gathered_t<std::span<const bool>>, std::vector<bool>>);
  const std::array<bool, 5> x{true, false, true, true, false};
  ParallelModel model{[](std::span<const bool> rows) { return rows; }, host_devices(2)};
  CHECK(model(std::span(x)) == std::vector<bool>(x.begin(), x.end()));
}

TEST_CASE("scalars of every type become one per shard, with one device too") {
  static_assert(std::is_same_v<gathered_t<Colour>, Tensor<Colour, 1>>);
  static_assert(std::is_same_v<gathered_t<Direction>, Tensor<Direction, 1>>);
  static_assert(std::is_same_v<gathered_t<bool>, Tensor<bool, 1>>);
  static_assert(std::is_same_v<gathered_t<Bfloat16>, Tensor<Bfloat16, 1>>);
  static_assert(std::is_same_v<gathered_t<std::byte>, Tensor<std::byte, 1>>);
  for (int devices = 1; devices <= 3; ++devices) {
    ParallelModel model{[](Context auto& ctx, std::span<const int> x, Colour colour, Bfloat16 number) {
                          return std::tuple{ctx.rank() == 0 ? colour : Colour::red, down,   x[0] == 1,
                                            std::complex<double>(x[0], 2),          number, 'c'};
                        },
                        host_devices(devices)};
    const auto [colours, directions, bools, numbers, halves, letters] =
        model(std::vector{1, 2, 3}, Colour::blue, Bfloat16{9});
    const auto shards = static_cast<std::size_t>(devices);
    REQUIRE(colours.size() == shards);
    CHECK(colours[0] == Colour::blue);
    CHECK(colours[shards - 1] == (devices == 1 ? Colour::blue : Colour::red));
    CHECK(directions[shards - 1] == down);
    CHECK(bools[0]);
    CHECK(numbers[shards - 1] == std::complex<double>(devices == 1 ? 1 : 3, 2));
    CHECK(halves[0] == Bfloat16{9});
    CHECK(letters[shards - 1] == 'c');
  }
}

TEST_CASE("vectors and spans of structs with tensors go in tree by tree and come out tree by tree") {
  struct Sample {
    View<const float, 2> image;
    std::span<const int> labels;
  };
  struct Result {
    Tensor<float, 2> image;
    std::vector<int> labels;
  };
  const auto image = counted<float, 2>({5, 2});
  const std::vector<int> labels{0, 1, 2, 3, 4};
  const std::vector<Sample> samples{{image, labels}, {image, labels}};
  for (int devices = 1; devices <= 3; ++devices) {
    ParallelModel model{[](const std::vector<Sample>& rows, std::span<const Sample> same_rows) {
                          std::vector<Result> results;
                          for (const Sample& row : rows) {
                            results.push_back({Tensor<float, 2>(row.image), {row.labels.begin(), row.labels.end()}});
                          }
                          return std::pair{results, same_rows.size()};
                        },
                        host_devices(devices)};
    const auto [results, sizes] = model(samples, std::span(samples));
    REQUIRE(results.size() == 2);
    CHECK(same(results[1].image, image));
    CHECK(results[1].labels == labels);
    CHECK(sizes[0] == 2);
  }
}

TEST_CASE("nested optionals keep the level that is empty") {
  using Nested = std::optional<std::optional<std::span<const int>>>;
  static_assert(std::is_same_v<gathered_t<Nested>, std::optional<std::optional<std::vector<int>>>>);
  const std::optional<std::optional<std::vector<int>>> outer;
  const std::optional<std::optional<std::vector<int>>> inner(std::in_place);
  const std::optional<std::optional<std::vector<int>>> full(std::vector{1, 2, 3});
  for (int devices = 1; devices <= 2; ++devices) {
    ParallelModel model{[](View<const float, 1>, const Nested& x) { return x; }, host_devices(devices)};
    const Tensor<float, 1> rows(3);
    CHECK_FALSE(model(rows, outer).has_value());
    REQUIRE(model(rows, inner).has_value());
    CHECK_FALSE(model(rows, inner)->has_value());
    CHECK(model(rows, full) == full);
  }
}

TEST_CASE("the same nested structure comes back with one device and with several") {
  const auto x = counted<float, 2>({5, 2});
  const auto tree =
      dict("tensor"_k = x, "list"_k = std::vector<std::pair<std::vector<int>, Tensor<float, 2>>>{{{1, 2, 3, 4, 5}, x}},
           "hashed"_k = std::unordered_map<std::string, Tensor<float, 2>>{{"a", x}, {"b", x}},
           "numbered"_k = std::map<int, std::array<Tensor<float, 2>, 2>>{{-1, {x, x}}},
           "maybe"_k = std::optional<std::variant<std::monostate, Tensor<float, 2>>>(x));
  for (int devices = 1; devices <= 3; ++devices) {
    ParallelModel model{[](const auto& rows) { return rows; }, host_devices(devices)};
    const auto back = model(tree);
    static_assert(std::is_same_v<decltype(back), const std::remove_const_t<decltype(tree)>>);
    CHECK(same(back["tensor"_k], x));
    CHECK(back["list"_k].at(0).first == tree["list"_k][0].first);
    CHECK(same(back["list"_k][0].second, x));
    CHECK(back["hashed"_k].size() == 2);
    CHECK(same(back["hashed"_k].at("b"), x));
    CHECK(same(back["numbered"_k].at(-1)[1], x));
    CHECK(same(std::get<1>(back["maybe"_k].value()), x));
  }
}
