// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/parallel/into.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::Context;
using fanout::dict;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;
using namespace fanout::literals;

namespace {

const std::vector five{1, 2, 3, 4, 5};

auto filled(Context auto& ctx, std::span<const int> rows, int factor) {
  auto output = fanout::output<int>(ctx);
  for (std::size_t i = 0; i < rows.size(); ++i) output[i] = rows[i] * factor;
  return output;
}
template <class X>
std::vector<int> listed(const X& x) {
  return {x.begin(), x.end()};
}

/// Whether all shards wrote their outputs right where they are to be.
struct WritesAt {
  const int* begin;
  auto forward(Context auto& ctx, std::span<const int> rows) const {
    auto output = filled(ctx, rows, 2);
    CHECK(output.data() == begin + ctx.rows().first);
    return output;
  }
};

}  // namespace

TEST_CASE("an output is written right into a tensor or a view of the caller's") {
  Tensor<int, 1> result(5);
  const auto* const data = result.data();
  const ParallelModel model{WritesAt{data}, host_devices(3)};
  model.into(result)(five);
  CHECK(listed(result) == std::vector{2, 4, 6, 8, 10});
  CHECK(result.data() == data);
  std::vector<int> own(7, -1);
  const ParallelModel other{WritesAt{own.data() + 1}, host_devices(3)};
  other.into(View<int, 1>(own.data() + 1, 5))(five);
  CHECK(own == std::vector{-1, 2, 4, 6, 8, 10, -1});
}

TEST_CASE("a result that is not an output is gathered and copied to the destination") {
  Tensor<int, 1> result(5);
  const auto* const data = result.data();
  const ParallelModel views{[](View<const int, 1> rows) { return rows; }, host_devices(2)};
  const Tensor<int, 1> x = [] {
    Tensor<int, 1> tensor(5);
    for (std::size_t i = 0; i < 5; ++i) tensor[i] = five[i];
    return tensor;
  }();
  auto into = views.into(result);
  into(x);
  into(x);
  CHECK(listed(result) == five);
  CHECK(result.data() == data);
}

TEST_CASE("outputs that were written into each other's destinations are swapped") {
  Tensor<int, 1> once(5);
  Tensor<int, 1> twice(5);
  Tensor<int, 1> first_half(5);
  const ParallelModel model{[](Context auto& ctx, std::span<const int> rows) {
                              const auto a = filled(ctx, rows, 1);
                              const auto b = filled(ctx, rows, 2);
                              const auto c = filled(ctx, rows, 3);
                              return std::tuple{b, c, a};
                            },
                            host_devices(2)};
  model.into(std::tie(twice, once, first_half))(five);
  CHECK(listed(twice) == std::vector{2, 4, 6, 8, 10});
  CHECK(listed(once) == std::vector{3, 6, 9, 12, 15});
  CHECK(listed(first_half) == five);
}

TEST_CASE("an output is written right into a member of a struct, into a map and into a vector") {
  struct Pair {
    Tensor<int, 1> twice;
    fanout::Sum<int> count;
    Tensor<int, 1> same;
  };
  Pair pair{Tensor<int, 1>(5), {}, Tensor<int, 1>(5)};
  const int* const twice = pair.twice.data();
  const int* const same = pair.same.data();
  const ParallelModel structs{[&](Context auto& ctx, std::span<const int> rows) {
                                const auto a = filled(ctx, rows, 2);
                                const auto b = filled(ctx, rows, 1);
                                CHECK(a.data() == twice + ctx.rows().first);
                                CHECK(b.data() == same + ctx.rows().first);
                                return Pair{a, static_cast<int>(rows.size()), b};
                              },
                              host_devices(2)};
  structs.into(pair)(five);
  CHECK(pair.twice.data() == twice);
  CHECK(listed(pair.twice) == std::vector{2, 4, 6, 8, 10});
  CHECK(listed(pair.same) == five);
  CHECK(pair.count == 5);

  std::map<std::string, std::vector<Tensor<int, 1>>> map;
  map["x"].emplace_back(5);
  const int* const x = map["x"][0].data();
  const ParallelModel maps{[&](Context auto& ctx, std::span<const int> rows) {
                             const auto a = filled(ctx, rows, 2);
                             CHECK(a.data() == x + ctx.rows().first);
                             std::map<std::string, std::vector<Tensor<int, 1>>> result;
                             result["x"].push_back(a);
                             return result;
                           },
                           host_devices(2)};
  maps.into(map)(five);
  CHECK(map["x"][0].data() == x);
  CHECK(listed(map["x"][0]) == std::vector{2, 4, 6, 8, 10});
}

TEST_CASE("a result that is assigned never shares the destination of another result") {
  Tensor<int, 1> result(5);
  std::optional<Tensor<int, 1>> variable;
  const ParallelModel outputs{[](auto& ctx, std::span<const int> rows) {
                                return std::tuple(std::optional<Tensor<int, 1>>(filled(ctx, rows, 2)),
                                                  filled(ctx, rows, 3));
                              },
                              host_devices(2)};
  outputs.into(std::tie(variable, result))(five);
  CHECK(listed(*variable) == std::vector{2, 4, 6, 8, 10});
  CHECK(listed(result) == std::vector{3, 6, 9, 12, 15});
  const ParallelModel tensors{[](std::span<const int> rows) {
                                Tensor<int, 1> twice(rows.size());
                                for (std::size_t i = 0; i < rows.size(); ++i) twice[i] = 2 * rows[i];
                                Tensor<int, 1> minus(rows.size());
                                for (std::size_t i = 0; i < rows.size(); ++i) minus[i] = -rows[i];
                                return std::tuple(std::optional(std::move(twice)), std::move(minus));
                              },
                              host_devices(2)};
  tensors.into(std::tie(variable, result))(five);
  CHECK(listed(*variable) == std::vector{2, 4, 6, 8, 10});
  CHECK(listed(result) == std::vector{-1, -2, -3, -4, -5});
}

namespace {

struct TwoTensors {
  fanout::First<Tensor<int, 1>> first;
  Tensor<int, 1> second;
};

}  // namespace

TEST_CASE("a member with a rule never shares the destination of another result") {
  const ParallelModel model{[](auto& ctx, std::span<const int> rows) {
                              const auto first = filled(ctx, rows, 2);
                              return TwoTensors{Tensor<int, 1>(first), filled(ctx, rows, 3)};
                            },
                            host_devices(1)};
  TwoTensors result{{}, Tensor<int, 1>(5)};
  model.into(result)(five);
  CHECK(listed(result.first.value) == std::vector{2, 4, 6, 8, 10});
  CHECK(listed(result.second) == std::vector{3, 6, 9, 12, 15});
}

TEST_CASE("values that stay sharded never share a destination") {
  const ParallelModel model{[](auto& ctx, std::span<const int> rows) {
                              const auto first = filled(ctx, rows, 2);
                              const auto second = filled(ctx, rows, 3);
                              return std::tuple(fanout::sharded(first), second,
                                                fanout::sharded(std::optional<Tensor<int, 1>>(second)));
                            },
                            host_devices(2)};
  auto result = model(five);
  model.into(result)(five);
  const auto& [left, gathered, optional] = result;
  CHECK(listed(left[0]) == std::vector{2, 4, 6});
  CHECK(listed(left[1]) == std::vector{8, 10});
  CHECK(listed(gathered) == std::vector{3, 6, 9, 12, 15});
  CHECK(listed(*optional[1]) == std::vector{12, 15});
  CHECK(optional[0]->data() != gathered.data());
}

TEST_CASE("whole values that are combined are written to their places") {
  const ParallelModel model{[](auto& ctx, std::span<const int> rows) {
                              const auto first = filled(ctx, rows, 2);
                              using Tensors = std::pair<Tensor<int, 1>, Tensor<int, 1>>;
                              return fanout::reduce(Tensors(filled(ctx, rows, 3), first),
                                                    [](Tensors all, const Tensors&) { return all; });
                            },
                            host_devices(1)};
  std::pair result{Tensor<int, 1>(5), Tensor<int, 1>(5)};
  model.into(result)(five);
  CHECK(listed(result.first) == std::vector{3, 6, 9, 12, 15});
  CHECK(listed(result.second) == std::vector{2, 4, 6, 8, 10});
}

TEST_CASE("an output is written straight into an optional or a variant that holds the same alternative") {
  using Maybe = std::optional<Tensor<int, 1>>;
  using Either = std::variant<std::vector<int>, Tensor<int, 1>>;
  bool empty = false;
  const ParallelModel model{[&empty](Context auto& ctx, std::span<const int> rows) {
                              Maybe maybe = filled(ctx, rows, 2);
                              Either either = filled(ctx, rows, 3);
                              if (empty) return std::tuple(Maybe(), Either(std::vector<int>(rows.begin(), rows.end())));
                              return std::tuple(std::move(maybe), std::move(either));
                            },
                            host_devices(2)};
  Maybe maybe = Tensor<int, 1>(5);
  Either either = Tensor<int, 1>(5);
  const int* const twice = maybe->data();
  const int* const thrice = std::get<1>(either).data();
  model.into(std::tie(maybe, either))(five);
  CHECK(maybe->data() == twice);
  CHECK(listed(*maybe) == std::vector{2, 4, 6, 8, 10});
  CHECK(std::get<1>(either).data() == thrice);
  CHECK(listed(std::get<1>(either)) == std::vector{3, 6, 9, 12, 15});

  empty = true;
  Either first = std::vector<int>();
  model.into(std::tie(maybe, first))(five);
  CHECK_FALSE(maybe.has_value());
  CHECK(std::get<0>(first) == five);
  model.into(std::tie(maybe, either))(five);
  CHECK(std::get<0>(either) == five);
}

TEST_CASE("an optional or a variant that holds something else is assigned, or refused with its place") {
  const ParallelModel model{[](std::span<const int> rows) {
                              return std::tuple(
                                  std::optional(Tensor<int, 1>(rows.size())),
                                  std::variant<std::vector<int>, Tensor<int, 1>>(Tensor<int, 1>(rows.size())));
                            },
                            host_devices(2)};
  std::optional<Tensor<int, 1>> maybe;
  std::variant<std::vector<int>, Tensor<int, 1>> either = std::vector<int>();
  model.into(std::tie(maybe, either))(five);
  CHECK(maybe->size() == 5);
  CHECK(std::get<1>(either).size() == 5);

  Tensor<int, 1> shown(5);
  Tensor<int, 1> shown_too(5);
  std::optional<View<int, 1>> view(shown);
  std::variant<std::vector<int>, View<int, 1>> other(shown_too);
  model.into(std::tie(view, other))(five);
  const auto refused = [&] {
    return message_of<fanout::StructureMismatch>([&] { model.into(std::tie(view, other))(five); });
  };
  view.reset();
  CHECK(says(refused(), "output[0]", "expected a value, or a destination of the result's type", "found none"));
  view = shown;
  other = std::vector<int>();
  CHECK(says(refused(), "output[1]", "expected alternative 1", "found alternative 0"));
}

TEST_CASE("an output that is returned in part is put together before it is written") {
  Tensor<int, 1> result(4);
  const ParallelModel model{[](Context auto& ctx, std::span<const int> rows) {
                              auto output = filled(ctx, rows, 1);
                              return View<const int, 1>(output.data(), rows.size() - 1);
                            },
                            host_devices(2), fanout::Options{.split = fanout::ChunkSplit{}}};
  model.into(result)(std::vector{1, 2, 3, 4, 5, 6});
  CHECK(listed(result) == std::vector{1, 2, 4, 5});
}

TEST_CASE("results of any structure are written into variables, dicts, maps and structs of the caller's") {
  struct Both {
    Tensor<int, 1> rows;
    fanout::Sum<int> sum;
  };
  const ParallelModel model{[](Context auto& ctx, std::span<const int> rows) {
                              const auto output = filled(ctx, rows, 1);
                              std::map<std::string, Tensor<int, 1>> map;
                              map.emplace("two", filled(ctx, rows, 2));
                              return dict("pair"_k = std::pair{rows, fanout::psum(rows[0])}, "map"_k = std::move(map),
                                          "struct"_k = Both{output, rows[0]}, "texts"_k = std::string("x"),
                                          "list"_k = std::vector{output, output});
                            },
                            host_devices(2)};
  std::vector<int> numbers(5);
  int sum = 0;
  std::map<std::string, Tensor<int, 1>> map;
  map.emplace("two", Tensor<int, 1>(5));
  Both both{Tensor<int, 1>(5), 0};

  std::vector<std::string> texts;
  std::vector<Tensor<int, 1>> list(2, Tensor<int, 1>(5));
  auto to = dict("pair"_k = std::pair<std::span<int>, int&>(numbers, sum), "map"_k = map, "struct"_k = both,
                 "texts"_k = texts, "list"_k = list);
  const auto* const data = to["struct"_k].rows.data();
  model.into(to)(five);
  CHECK(numbers == five);
  CHECK(sum == 5);
  CHECK(listed(to["map"_k].at("two")) == std::vector{2, 4, 6, 8, 10});
  CHECK(listed(to["struct"_k].rows) == five);
  CHECK(to["struct"_k].sum == 5);
  CHECK(to["struct"_k].rows.data() == data);
  CHECK(to["texts"_k].size() == 2);
  CHECK(listed(to["list"_k][1]) == five);
}

TEST_CASE("a destination that does not fit is named") {
  const ParallelModel model{[](std::span<const int> rows) {
                              Tensor<int, 1> tensor(rows.size());
                              std::map<int, Tensor<int, 1>> map;
                              map.emplace(7, tensor);
                              return std::tuple{std::move(tensor), rows, std::move(map)};
                            },
                            host_devices(2)};
  Tensor<int, 1> four(4);
  Tensor<int, 1> fits(5);
  std::vector<int> numbers(5);
  std::map<int, Tensor<int, 1>> map;
  CHECK(says(message_of<fanout::ShapeMismatch>([&] {
               map.emplace(7, Tensor<int, 1>(5));
               model.into(std::tie(four, numbers, map))(five);
             }),
             "output[0]", "expected [5]", "found [4]"));
  CHECK(says(message_of<fanout::StructureMismatch>([&] {
               auto to = std::tuple{fits.view(), std::span(numbers).first(3), map};
               model.into(to)(five);
             }),
             "output[1]", "5 elements", "found 3"));
  map.clear();
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model.into(std::tie(fits, numbers, map))(five); }),
             "output[2][7]", "expected this key, found no key"));
  map.emplace(7, Tensor<int, 1>(5));
  CHECK_NOTHROW(model.into(std::tie(fits, numbers, map))(five));
}

TEST_CASE("a destination in a map whose keys are pairs is named by its key") {
  using Places = std::map<std::pair<int, int>, Tensor<int, 1>>;
  const ParallelModel model{[](std::span<const int> rows) {
                              const Tensor<int, 1> tensor(rows.size());
                              return Places{{{0, 0}, tensor}, {{0, 1}, tensor}};
                            },
                            host_devices(2)};
  const Tensor<int, 1> fits(5);
  Places extents{{{0, 0}, fits}, {{0, 1}, Tensor<int, 1>(4)}};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model.into(extents)(five); }), "output[(0, 1)]", "found [4]"));
  Places less{{{0, 0}, fits}};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model.into(less)(five); }), "output[(0, 1)]",
             "expected this key, found (0, 0)"));
  Places more{{{0, 0}, fits}, {{0, 1}, fits}, {{0, 2}, fits}};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { model.into(more)(five); }), "output[(0, 2)]",
             "expected only the result's keys, (0, 0), (0, 1), found this one too"));
}

TEST_CASE("a destination in an unknown memory is refused") {
  const ParallelModel model{[](std::span<const int> rows) { return Tensor<int, 1>(rows.size()); }, host_devices(2)};
  std::vector<int> own(5, 7);
  const View<int, 1> elsewhere(own.data(), {5}, {{.kind = "nobody", .index = 2}});
  CHECK(says(message_of<fanout::DeviceMismatch>([&] { model.into(elsewhere)(five); }),
             "a destination lies in another memory than the result",
             "expected host memory, found the memory of nobody:2"));
  CHECK(own == std::vector(5, 7));
}

TEST_CASE("wrong extents are named at any place of the tree, for fewer and more rows") {
  struct Two {
    Tensor<int, 1> same;
    Tensor<int, 1> twice;
  };
  const ParallelModel model{[](Context auto& ctx, std::span<const int> rows) {
                              const auto output = filled(ctx, rows, 1);
                              std::map<int, std::vector<Tensor<int, 1>>> map;
                              map[3].push_back(output);
                              map[7] = {output, output};
                              return dict("map"_k = std::move(map), "pair"_k = std::pair{output, output},
                                          "struct"_k = Two{output, output}, "last"_k = output);
                            },
                            host_devices(2)};
  const Tensor<int, 1> fits(5);
  const std::map<int, std::vector<Tensor<int, 1>>> map{{3, {fits}}, {7, {fits, fits}}};
  const auto good =
      dict("map"_k = map, "pair"_k = std::pair{fits, fits}, "struct"_k = Two{fits, fits}, "last"_k = fits);
  for (const std::size_t rows : {0U, 4U, 6U}) {
    const auto refused = [&](const auto& place, const char* name) {
      auto to = good;
      place(to) = Tensor<int, 1>(rows);
      const std::string found = "found [" + std::to_string(rows) + "]";
      return says(message_of<fanout::ShapeMismatch>([&] { model.into(to)(five); }), std::string_view(name),
                  "expected [5]", std::string_view(found));
    };
    CHECK(refused(
        [](auto& to) -> auto& { return to["map"_k].at(3)[0]; }, "output.map[3][0]:"));
    CHECK(refused(
        [](auto& to) -> auto& { return to["map"_k].at(7)[1]; }, "output.map[7][1]:"));
    CHECK(refused(
        [](auto& to) -> auto& { return to["pair"_k].first; }, "output.pair[0]:"));
    CHECK(refused(
        [](auto& to) -> auto& { return to["pair"_k].second; }, "output.pair[1]:"));
    CHECK(refused(
        [](auto& to) -> auto& { return to["struct"_k].same; }, "output.struct.same:"));
    CHECK(refused(
        [](auto& to) -> auto& { return to["struct"_k].twice; }, "output.struct.twice:"));
    CHECK(refused(
        [](auto& to) -> auto& { return to["last"_k]; }, "output.last:"));
  }
  auto to = good;
  CHECK_NOTHROW(model.into(to)(five));
}

TEST_CASE("the same number of elements in other extents is refused, in a tensor or a view") {
  const ParallelModel model{[](Context auto& ctx, std::span<const int>) { return fanout::output<int>(ctx, 2); },
                            host_devices(2)};
  Tensor<int, 2> turned(2, 5);
  CHECK(
      message_of<fanout::ShapeMismatch>([&] { model.into(turned)(five); }) ==
      "a destination has other extents than the result at output: expected [5, 2], found [2, 5]; make the destination "
      "of the result's extents; into() does not resize it");
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model.into(turned.view())(five); }), "output:", "expected [5, 2]",
             "found [2, 5]"));
}

TEST_CASE("nothing is written beside a destination whose rows are too short") {
  const auto wide = [](auto array) {
    for (auto& element : array) element = 1;
    return array;
  };
  const ParallelModel own{[&](std::span<const int> rows) { return wide(Tensor<int, 2>(rows.size(), 2)); },
                          host_devices(2)};
  const ParallelModel output{[&](Context auto& ctx, std::span<const int>) { return wide(fanout::output<int>(ctx, 2)); },
                             host_devices(2)};
  const auto check = [](const auto& model) {
    std::vector<int> around(15, -1);
    const View<int, 2> narrow(around.data(), 5, 1);
    CHECK(says(message_of<fanout::ShapeMismatch>([&] { model.into(narrow)(five); }), "output:", "expected [5, 2]",
               "found [5, 1]"));
    CHECK(std::vector(around.begin() + 5, around.end()) == std::vector(10, -1));
  };
  check(own);
  check(output);
}

TEST_CASE("a span, a vector of trees and a map have the length of the result, not less and not more") {
  const ParallelModel spans{[](std::span<const int> rows) { return rows; }, host_devices(2)};
  for (const std::size_t length : {0U, 4U, 6U}) {
    std::vector<int> numbers(length, -1);
    CHECK(says(message_of<fanout::StructureMismatch>([&] { spans.into(std::span(numbers))(five); }),
               "output:", "expected 5 elements", "found " + std::to_string(length),
               "; make the destination of the result's structure"));
    spans.into(numbers)(five);  // a vector takes the length of the result
    CHECK(numbers == five);
  }

  const ParallelModel lists{[](Context auto& ctx, std::span<const int> rows) {
                              const auto output = filled(ctx, rows, 1);
                              return std::pair{std::vector{output, output}, std::map<int, Tensor<int, 1>>{{7, output}}};
                            },
                            host_devices(2)};
  std::vector<Tensor<int, 1>> list(2, Tensor<int, 1>(5));
  std::map<int, Tensor<int, 1>> map{{7, Tensor<int, 1>(5)}};
  for (const std::size_t length : {0U, 1U, 3U}) {
    std::vector<Tensor<int, 1>> other(length, Tensor<int, 1>(5));
    CHECK(says(message_of<fanout::StructureMismatch>([&] { lists.into(std::tie(other, map))(five); }),
               "output[0]:", "expected 2 trees", "found " + std::to_string(length)));
  }
  // The one that is too many comes before the others and after them.
  for (const int key : {3, 9}) {
    auto other = map;
    other.emplace(key, Tensor<int, 1>(5));
    CHECK(says(message_of<fanout::StructureMismatch>([&] { lists.into(std::tie(list, other))(five); }),
               "output[1][" + std::to_string(key) + "]:", "expected only the result's keys, ", "found this one too"));
  }
  CHECK_NOTHROW(lists.into(std::tie(list, map))(five));

  // Keys of another type, as which those of the result can be looked up.
  const ParallelModel names{[](std::span<const int> rows) {
                              return std::map<std::string, std::vector<int>>{{"x", {rows.begin(), rows.end()}}};
                            },
                            host_devices(2)};
  std::map<std::string_view, std::vector<int>> named{{"x", {}}};
  names.into(named)(five);
  CHECK(named.at("x") == five);
  named["wide"] = {};
  CHECK(says(message_of<fanout::StructureMismatch>([&] { names.into(named)(five); }),
             "output[\"wide\"]:", "expected only the result's keys, "));
}

TEST_CASE("tensors that forward makes may stand beside outputs of the same extents") {
  const auto own = [](std::span<const int> rows, int factor) {
    Tensor<int, 1> tensor(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) tensor[i] = rows[i] * factor;
    return tensor;
  };
  const ParallelModel own_last{[&](Context auto& ctx, std::span<const int> rows) {
                                 return std::tuple{filled(ctx, rows, 2), own(rows, 3), filled(ctx, rows, 4)};
                               },
                               host_devices(2)};
  const ParallelModel own_first{[&](Context auto& ctx, std::span<const int> rows) {
                                  return std::tuple{own(rows, 2), filled(ctx, rows, 3), own(rows, 4)};
                                },
                                host_devices(2)};
  const auto check = [](const auto& model) {
    Tensor<int, 1> twice(5);
    Tensor<int, 1> thrice(5);
    Tensor<int, 1> four_times(5);
    for (int call = 0; call < 2; ++call) {
      model.into(std::tie(twice, thrice, four_times))(five);
      CHECK(listed(twice) == std::vector{2, 4, 6, 8, 10});
      CHECK(listed(thrice) == std::vector{3, 6, 9, 12, 15});
      CHECK(listed(four_times) == std::vector{4, 8, 12, 16, 20});
    }
  };
  check(own_last);
  check(own_first);
}

TEST_CASE("many results find their destinations, whatever the order of their outputs") {
  constexpr std::size_t count = 11;  // more than a call keeps near
  const ParallelModel model{[](Context auto& ctx, std::span<const int> rows) {
                              std::vector<Tensor<int, 1>> list(count);
                              for (std::size_t i = count; i > 0;
                                   i -= 2) {  // every second one an output, the last first
                                list[i - 1] = filled(ctx, rows, static_cast<int>(i));
                                if (i == 1) break;
                                list[i - 2] = Tensor<int, 1>(rows.size());
                                for (std::size_t k = 0; k < rows.size(); ++k) list[i - 2][k] = -rows[k];
                              }
                              return list;
                            },
                            host_devices(2)};
  std::vector<Tensor<int, 1>> list(count, Tensor<int, 1>(5));
  std::vector<const int*> data;
  data.reserve(count);
  for (const auto& tensor : list) data.push_back(tensor.data());
  model.into(list)(five);
  for (std::size_t i = 0; i < count; ++i) {
    CAPTURE(i);
    CHECK(list[i].data() == data[i]);
    CHECK(list[i][4] == (i % 2 == 0 ? 5 * static_cast<int>(i + 1) : -5));
  }
}

TEST_CASE("into runs on all devices where it is asked to") {
  const ParallelModel model{[](Context auto& ctx) { return ctx.rank(); }, host_devices(3)};
  Tensor<std::size_t, 1> ranks(3);
  model.into(ranks)(fanout::on_all());
  CHECK(ranks[2] == 2);
}
