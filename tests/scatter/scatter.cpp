// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
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

#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::broadcast;
using fanout::dict;
using fanout::Plan;
using fanout::RowRange;
using fanout::scatter;
using fanout::ScatterTarget;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

enum class Mode { train, infer };

struct Settings {
  int steps = 3;
  std::string name = "a name";
};

struct Samples {
  View<const float, 2> x;
  std::vector<std::span<const int>> labels;
};
struct Batch {
  Samples samples;
  const Settings& settings;
  std::string name;
  std::pair<View<const float, 2>, int> pair;
};
class Window {
  View<const float, 2> rows_;
  friend constexpr auto fields(const Window*) { return dict("rows"_k = &Window::rows_); }

 public:
  Window() = default;
  explicit Window(View<const float, 2> rows) : rows_(rows) {}
  const View<const float, 2>& rows() const { return rows_; }
};

Tensor<float, 2> numbered(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> tensor(rows, columns);
  float next = 0;
  for (float& x : tensor) x = next++;
  return tensor;
}

const Plan five{{.rows = {0, 3}, .device = 0}, {.rows = {3, 5}, .device = 1}};
const ScatterTarget second{.shard = 1, .rows = {3, 5}};

template <class... Args>
auto second_of(const Args&... args) {
  return scatter(second, args...);
}

}  // namespace

TEST_CASE("a tensor is split on axis 0 without a copy") {
  const auto x = numbered(5, 2);
  const auto shards = scatter(five, x);
  REQUIRE(shards.size() == 2);
  static_assert(std::is_same_v<decltype(shards[0]), std::tuple<View<const float, 2>>>);
  const auto [first] = shards[0];
  const auto [rest] = shards[1];
  CHECK(first.data() == x.data());
  CHECK(first.extent(0) == 3);
  CHECK(first.extent(1) == 2);
  CHECK(rest.data() == &x(3, 0));
  CHECK(rest.extent(0) == 2);
  CHECK(rest(1, 1) == 9);
}

TEST_CASE("views, vectors and spans are split on axis 0 without a copy") {
  auto x = numbered(5, 2);
  std::vector<double> numbers{0, 1, 2, 3, 4};
  std::vector<std::string> words{"a", "b", "c", "d", "e"};
  const std::span<int> none;
  const auto [view, const_view, doubles, span, texts] =
      second_of(x.view(), View<const float, 2>(x), numbers, std::span<double>(numbers), words);
  static_assert(std::is_same_v<decltype(view), const View<const float, 2>>);
  static_assert(std::is_same_v<decltype(const_view), const View<const float, 2>>);
  static_assert(std::is_same_v<decltype(doubles), const std::span<const double>>);
  static_assert(std::is_same_v<decltype(span), const std::span<const double>>);
  static_assert(std::is_same_v<decltype(texts), const std::span<const std::string>>);
  CHECK(view.data() == &x(3, 0));
  CHECK(view.extent(0) == 2);
  CHECK(const_view.data() == &x(3, 0));
  CHECK(doubles.data() == &numbers[3]);
  CHECK(doubles.size() == 2);
  CHECK(span.data() == &numbers[3]);
  CHECK(span.size() == 2);
  CHECK(texts.data() == &words[3]);
  CHECK(texts.size() == 2);
  CHECK(fanout::batch_rows(none) == std::size_t{0});
}

TEST_CASE("vectors of structs and of small arrays are split by element") {
  struct Point {
    float x, y;
  };
  const std::vector<Point> points(5);
  const std::vector<std::array<float, 3>> triples(5);
  const auto [some, others] = second_of(points, triples);
  CHECK(some.data() == &points[3]);
  CHECK(others.data() == &triples[3]);
}

TEST_CASE("tuples, pairs and arrays are split element by element, and other elements become references") {
  const auto x = numbered(5, 2);
  const std::tuple tuple{x, 7, std::string("text")};
  const std::pair<std::vector<int>, Mode> pair{{0, 1, 2, 3, 4}, Mode::infer};
  const std::array<Tensor<float, 2>, 2> array{x, x};
  const auto [in_tuple, in_pair, in_array] = second_of(tuple, pair, array);
  static_assert(
      std::is_same_v<decltype(in_tuple), const std::tuple<View<const float, 2>, const int&, const std::string&>>);
  static_assert(std::is_same_v<decltype(in_pair), const std::pair<std::span<const int>, const Mode&>>);
  static_assert(std::is_same_v<decltype(in_array), const std::array<View<const float, 2>, 2>>);
  CHECK(std::get<0>(in_tuple).data() == &std::get<0>(tuple)(3, 0));
  CHECK(&std::get<1>(in_tuple) == &std::get<1>(tuple));
  CHECK(&std::get<2>(in_tuple) == &std::get<2>(tuple));
  CHECK(in_pair.first.data() == &pair.first[3]);
  CHECK(&in_pair.second == &pair.second);
  CHECK(in_array[1].data() == &array[1](3, 0));
}

TEST_CASE("dicts and maps are split entry by entry and keep their keys") {
  const auto x = numbered(5, 2);
  const auto named = dict("image"_k = x, "inner"_k = dict("ids"_k = std::vector<int>{0, 1, 2, 3, 4}, "scale"_k = 2.5));
  const std::map<std::string, Tensor<float, 2>, std::greater<>> ordered{{"a", x}, {"b", x}};
  const std::unordered_map<int, std::vector<int>> hashed{{7, {0, 1, 2, 3, 4}}};
  const auto [of_dict, of_map, of_hashed] = second_of(named, ordered, hashed);
  static_assert(std::is_same_v<decltype(of_map), const std::map<std::string, View<const float, 2>, std::greater<>>>);
  static_assert(std::is_same_v<decltype(of_hashed), const std::unordered_map<int, std::span<const int>>>);
  CHECK(of_dict["image"_k].data() == &named["image"_k](3, 0));
  CHECK(of_dict["inner"_k]["ids"_k].data() == &named["inner"_k]["ids"_k][3]);
  CHECK(&of_dict["inner"_k]["scale"_k] == &named["inner"_k]["scale"_k]);
  REQUIRE(of_map.size() == 2);
  CHECK(of_map.begin()->first == "b");
  CHECK(of_map.at("a").data() == &ordered.at("a")(3, 0));
  REQUIRE(of_hashed.size() == 1);
  CHECK(of_hashed.at(7).data() == &hashed.at(7)[3]);
}

TEST_CASE("vectors of trees and optionals are split inside") {
  const auto x = numbered(5, 2);
  const std::vector<Tensor<float, 2>> tensors{x, x, x};
  const std::vector<std::vector<int>> of_rows{{0}, {1, 1}, {2}, {}, {4}};
  const std::vector<std::pair<Tensor<float, 2>, int>> pairs{{x, 4}};
  const std::optional<Tensor<float, 2>> some = x;
  const std::optional<Tensor<float, 2>> none;
  const auto [views, last_rows, of_pairs, of_some, of_none] = second_of(tensors, of_rows, pairs, some, none);
  static_assert(std::is_same_v<decltype(views), const std::vector<View<const float, 2>>>);
  static_assert(std::is_same_v<decltype(of_some), const std::optional<View<const float, 2>>>);
  REQUIRE(views.size() == 3);
  CHECK(views[2].data() == &tensors[2](3, 0));
  static_assert(std::is_same_v<decltype(last_rows), const std::span<const std::vector<int>>>);
  CHECK(last_rows.size() == 2);
  CHECK(last_rows.data() == &of_rows[3]);
  CHECK(of_pairs[0].first.data() == &pairs[0].first(3, 0));
  CHECK(&of_pairs[0].second == &pairs[0].second);
  REQUIRE(of_some.has_value());
  CHECK(of_some->data() == &(*some)(3, 0));
  CHECK_FALSE(of_none.has_value());
}

TEST_CASE("spans of trees are split inside and become vectors") {
  const std::vector<Tensor<float, 2>> tensors{numbered(5, 2), numbered(5, 1)};
  const auto [views] = second_of(std::span(tensors));
  static_assert(std::is_same_v<decltype(views), const std::vector<View<const float, 2>>>);
  REQUIRE(views.size() == 2);
  CHECK(views[1].data() == &tensors[1](3, 0));
  CHECK(fanout::batch_rows(std::span(tensors)) == std::size_t{5});
  fanout::ParallelModel model{[](std::span<const View<const float, 2>> x) { return x[1].extent(0); },
                              fanout::host_devices(2)};
  CHECK(model(std::span(tensors)).size() == 2);
}

TEST_CASE("a variant is split inside the alternative that it holds, and other values are copied") {
  using Variant = std::variant<std::string, Tensor<float, 2>, std::pair<int, std::vector<int>>, std::string>;
  const auto x = numbered(5, 2);
  const Variant text(std::in_place_index<0>, "text");
  const Variant tensor(x);
  const Variant pair(std::pair(7, std::vector<int>{0, 1, 2, 3, 4}));
  const Variant last(std::in_place_index<3>, "last");
  const auto [of_text, of_tensor, of_pair, of_last] = second_of(text, tensor, pair, last);
  static_assert(
      std::is_same_v<decltype(of_text), const std::variant<std::string, View<const float, 2>,
                                                           std::pair<const int&, std::span<const int>>, std::string>>);
  CHECK(std::get<0>(of_text) == "text");
  REQUIRE(of_tensor.index() == 1);
  CHECK(std::get<1>(of_tensor).data() == &std::get<1>(tensor)(3, 0));
  CHECK(std::get<1>(of_tensor).extent(0) == 2);
  REQUIRE(of_pair.index() == 2);
  CHECK(&std::get<2>(of_pair).first == &std::get<2>(pair).first);
  CHECK(std::get<2>(of_pair).second.data() == &std::get<2>(pair).second[3]);
  REQUIRE(of_last.index() == 3);
  CHECK(std::get<3>(of_last) == "last");
  CHECK_FALSE(fanout::batch_rows(text).has_value());
  CHECK(fanout::batch_rows(tensor, text) == std::size_t{5});
  CHECK(fanout::batch_rows(last, pair) == std::size_t{5});
}

TEST_CASE("a variant without an array in any alternative goes to every shard by reference") {
  const std::variant<int, std::string> variant("text");
  const std::monostate nothing;
  const auto [whole, same] = second_of(variant, nothing);
  CHECK(&whole == &variant);
  CHECK(&same == &nothing);
}

TEST_CASE("variants inside trees and trees inside variants are split") {
  using Variant = std::variant<std::monostate, View<const float, 2>>;
  struct Holding {
    Variant maybe;
    int number;
  };
  const auto x = numbered(5, 2);
  const std::vector<Variant> vector{x.view(), {}, x.view()};
  const std::optional<Variant> some = x.view();
  const std::variant<int, std::map<std::string, Variant>> map(std::map<std::string, Variant>{{"a", x.view()}});
  const auto [of_vector, of_some, of_map, of_holding] = second_of(vector, some, map, Holding{x.view(), 7});
  static_assert(std::is_same_v<decltype(of_vector), const std::vector<Variant>>);
  static_assert(std::is_same_v<decltype(of_holding), const Holding>);
  REQUIRE(of_vector.size() == 3);
  CHECK(std::get<1>(of_vector[2]).data() == &x(3, 0));
  CHECK(of_vector[1].index() == 0);
  CHECK(std::get<1>(of_some.value()).data() == &x(3, 0));
  CHECK(std::get<1>(std::get<1>(of_map).at("a")).data() == &x(3, 0));
  CHECK(std::get<1>(of_holding.maybe).data() == &x(3, 0));
  CHECK(of_holding.number == 7);
}

TEST_CASE("rows in an alternative that differ from other rows are refused with both places") {
  const std::variant<int, std::pair<int, Tensor<float, 2>>> variant(std::pair(1, numbered(4, 2)));
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { fanout::batch_rows(numbered(5, 2), variant); }), "input[0]",
             "input[1][1]", "5 and 4"));
}

TEST_CASE("a variant with arrays that holds no value is refused with its place") {
  struct Thrower {
    operator Tensor<float, 2>() const { throw 1; }
  };
  std::variant<int, Tensor<float, 2>, std::map<int, Tensor<float, 2>>> variant(std::map<int, Tensor<float, 2>>{});
  CHECK_THROWS_AS(variant.emplace<1>(Thrower()), int);
  REQUIRE(variant.valueless_by_exception());
  CHECK(says(message_of<fanout::StructureMismatch>([&] { second_of(1, std::tie(variant)); }), "without a value",
             "input[1][0]"));
  fanout::ParallelModel model{[](View<const float, 2> x, const auto& v) { return x.extent(0) + v.index(); },
                              fanout::host_devices(2)};
  CHECK_THROWS_AS(model(numbered(5, 2), variant), fanout::StructureMismatch);
  CHECK_THROWS_AS(model(numbered(1, 2), variant), fanout::StructureMismatch);
}

TEST_CASE("scalars, strings, enums and other values go to every shard by const reference") {
  const int number = 3;
  const std::complex<double> z{1, 2};
  const Mode mode = Mode::train;
  const std::string text = "text";
  const Settings settings;
  const auto pieces = second_of(number, z, mode, text, settings, "literal");
  CHECK(&std::get<0>(pieces) == &number);
  CHECK(&std::get<1>(pieces) == &z);
  CHECK(&std::get<2>(pieces) == &mode);
  CHECK(&std::get<3>(pieces) == &text);
  CHECK(&std::get<4>(pieces) == &settings);
  CHECK(std::string(std::get<5>(pieces)) == "literal");
  CHECK_FALSE(fanout::batch_rows(number, text, settings).has_value());
}

TEST_CASE("containers without an array go to every shard whole") {
  const std::tuple tuple{1, std::string("b")};
  const std::map<std::string, int> map{{"a", 1}};
  const auto named = dict("rate"_k = 0.5);
  const std::optional<int> some = 4;
  const std::tuple<> nothing;
  const auto pieces = second_of(tuple, map, named, some, nothing);
  CHECK(&std::get<0>(pieces) == &tuple);
  CHECK(&std::get<1>(pieces) == &map);
  CHECK(&std::get<2>(pieces) == &named);
  CHECK(&std::get<3>(pieces) == &some);
  CHECK(&std::get<4>(pieces) == &nothing);
}

TEST_CASE("structs of views and spans become structs of the rows, and their other members are shared") {
  auto x = numbered(5, 2);
  const std::vector<int> labels{0, 1, 2, 3, 4};
  const Settings settings;
  const Batch batch{{x, {labels}}, settings, "a text", std::pair<View<const float, 2>, int>(x, 7)};
  const auto [piece] = second_of(batch);
  static_assert(std::is_same_v<decltype(piece), const Batch>);
  CHECK(piece.samples.x.data() == &x(3, 0));
  CHECK(piece.samples.x.extent(0) == 2);
  REQUIRE(piece.samples.labels.size() == 1);
  CHECK(piece.samples.labels[0].data() == &labels[3]);
  CHECK(&piece.settings == &settings);
  CHECK(piece.name == "a text");
  CHECK(piece.pair.first.extent(0) == 2);
  CHECK(piece.pair.second == 7);
  CHECK(fanout::batch_rows(batch) == 5U);
  CHECK(std::get<0>(std::get<0>(second_of(std::tuple(batch, 1)))).samples.x.extent(0) == 2);
}

TEST_CASE("a class that lists its fields is split like a struct") {
  auto x = numbered(5, 2);
  const auto [piece] = second_of(Window(x));
  CHECK(piece.rows().data() == &x(3, 0));
}

TEST_CASE("structs without an array go to every shard by reference") {
  struct WithUnion {
    union {
      int number;
      float real;
    };
    char text[100];
    unsigned bits : 3;
  };
  const WithUnion with_union{};
  const Settings settings;
  const auto [unions, whole] = second_of(with_union, settings);
  CHECK(&unions == &with_union);
  CHECK(&whole == &settings);
}

TEST_CASE("members whose rows differ are refused with both places") {
  auto x = numbered(5, 2);
  const std::vector<int> labels{0, 1, 2};
  const Settings settings;
  const Batch batch{{x, {labels}}, settings, "", std::pair<View<const float, 2>, int>(x, 7)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { fanout::batch_rows(1, batch); }),
             "input[1][0].x and input[1][0].labels[0]", "5 and 3"));
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { fanout::batch_rows(batch.samples); }), "input[0].x",
             "input[0].labels[0]"));
}

TEST_CASE("an empty vector of tensors holds no rows, and neither does an empty map") {
  const std::vector<Tensor<float, 2>> vector;
  const std::map<int, Tensor<float, 2>> map;
  CHECK_FALSE(fanout::batch_rows(vector, map).has_value());
  CHECK(fanout::batch_rows(vector, numbered(5, 1), map) == std::size_t{5});
  const auto [views, in_map] = second_of(vector, map);
  CHECK(views.empty());
  CHECK(in_map.empty());
}

TEST_CASE("broadcast borrows an lvalue and hands it out whole") {
  const auto table = numbered(9, 2);
  const auto x = numbered(5, 2);
  const auto whole = broadcast(table);
  CHECK(&whole.value == &table);
  const auto [rows, all] = second_of(x, whole);
  static_assert(std::is_same_v<decltype(std::get<1>(second_of(x, whole))), const Tensor<float, 2>&>);
  CHECK(&all == &table);
  CHECK(fanout::batch_rows(x, whole) == std::size_t{5});
  CHECK_FALSE(fanout::batch_rows(whole).has_value());
}

TEST_CASE("broadcast moves an rvalue") {
  auto table = numbered(9, 2);
  const float* const data = table.data();
  const auto whole = broadcast(std::move(table));
  static_assert(std::is_same_v<decltype(whole.value), Tensor<float, 2>>);
  CHECK(whole.value.data() == data);
  CHECK(&std::get<0>(second_of(whole)) == &whole.value);
}

TEST_CASE("broadcast inside a tuple or a dict is passed as its value, with or without an array beside it") {
  const auto table = numbered(9, 2);
  const auto x = numbered(5, 2);
  const std::tuple beside{x, broadcast(table)};
  const auto of_beside = std::get<0>(second_of(beside));
  static_assert(std::is_same_v<decltype(of_beside), const std::tuple<View<const float, 2>, const Tensor<float, 2>&>>);
  CHECK(&std::get<1>(of_beside) == &table);

  const std::tuple alone{1, broadcast(table)};
  const auto of_alone = std::get<0>(second_of(alone));
  static_assert(std::is_same_v<decltype(of_alone), const std::tuple<const int&, const Tensor<float, 2>&>>);
  CHECK(&std::get<1>(of_alone) == &table);

  const auto named = dict("inner"_k = dict("table"_k = broadcast(table)));
  const auto of_named = std::get<0>(second_of(named));
  CHECK(&of_named["inner"_k]["table"_k] == &table);
}

TEST_CASE("arguments whose rows differ are refused with both places and both extents") {
  const auto x = numbered(5, 2);
  const auto y = numbered(4, 2);
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)fanout::batch_rows(x, 3, y); }), "input[0]", "input[2]",
             "5 and 4", "broadcast"));
  const auto nested = dict("a"_k = std::tuple{1, x}, "b"_k = std::map<std::string, std::vector<int>>{{"k", {1, 2, 3}}});
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)fanout::batch_rows(nested); }), "input[0].a[1]",
             "input[0].b[\"k\"]", "5 and 3"));
  const std::vector<Tensor<float, 2>> tensors{x, x, y};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)fanout::batch_rows(0, tensors); }), "input[1][0]",
             "input[1][2]", "5 and 4"));
  const std::optional<std::pair<int, Tensor<float, 2>>> some{{1, y}};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)fanout::batch_rows(x, some); }), "input[0]", "input[1][1]",
             "5 and 4"));
}

TEST_CASE("a view that claims another memory is refused with its place") {
  const auto x = numbered(5, 2);
  const fanout::MemorySpace elsewhere{{.kind = "toy", .index = 3}};
  const View<const float, 2> view(x.data(), x.extents(), elsewhere);
  CHECK(says(message_of<fanout::DeviceMismatch>([&] {
               second_of(1, std::tuple{x, view});
             }),
             "input[1][1]", "expected host memory", "found the memory of toy:3"));
  const std::vector<View<const float, 2>> views{x, view};
  CHECK(says(message_of<fanout::DeviceMismatch>([&] { second_of(views); }), "input[0][1]"));
  const std::map<std::pair<int, int>, View<const float, 2>> by_place{{{0, 0}, x}, {{0, 1}, view}};
  CHECK(says(message_of<fanout::DeviceMismatch>([&] { second_of(by_place); }), "input[0][(0, 1)]"));
  fanout::ParallelModel model{[](View<const float, 2> rows) { return rows.extent(0); }, fanout::host_devices(2)};
  CHECK_THROWS_AS(model(view), fanout::DeviceMismatch);
  CHECK(model(x).size() == 2);
}

TEST_CASE("with fewer rows than devices the surplus devices stay idle") {
  fanout::ParallelModel model{[](fanout::Context auto& ctx, View<const float, 2> x) {
                                return std::tuple{ctx.size(), x.extent(0)};
                              },
                              fanout::host_devices(3)};
  const auto [sizes, rows] = model(numbered(1, 2));
  REQUIRE(sizes.size() == 1);
  CHECK(sizes[0] == 1);
  CHECK(rows[0] == 1);
  CHECK(std::get<0>(model(numbered(2, 2))).size() == 2);
}

TEST_CASE("with no rows every replica runs on empty input") {
  fanout::ParallelModel model{[](View<const float, 2> x) {
                                return std::tuple{x.extent(0), x.extent(1)};
                              },
                              fanout::host_devices(3)};
  const auto [rows, columns] = model(Tensor<float, 2>(0, 7));
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(rows[i] == 0);
    CHECK(columns[i] == 7);
  }
}

TEST_CASE("with nothing to split one shard runs on the main device") {
  fanout::ParallelModel model{[](fanout::Context auto& ctx, int x) {
                                return std::tuple{x, ctx.size(), ctx.rows().size(), ctx.device().id().index};
                              },
                              fanout::host_devices(3)};
  const auto [value, size, rows, index] = model(41);
  REQUIRE(value.size() == 1);
  CHECK(value[0] == 41);
  CHECK(size[0] == 1);
  CHECK(rows[0] == 0);
  CHECK(index[0] == 0);
}

TEST_CASE("forward is passed the rows in place") {
  const auto x = numbered(5, 2);
  fanout::ParallelModel model{[](fanout::Context auto& ctx, View<const float, 2> rows, const Settings& settings) {
                                return std::tuple{reinterpret_cast<std::uintptr_t>(rows.data()), ctx.rows().first,
                                                  reinterpret_cast<std::uintptr_t>(&settings)};
                              },
                              fanout::host_devices(2)};
  const Settings settings;
  const auto [address, begin, shared] = model(x, settings);
  REQUIRE(address.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(address[i] == reinterpret_cast<std::uintptr_t>(&x(begin[i], 0)));
    CHECK(shared[i] == reinterpret_cast<std::uintptr_t>(&settings));
  }
}
