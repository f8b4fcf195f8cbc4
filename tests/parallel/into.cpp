// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/parallel/into.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
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
    CHECK(output.data() == begin + ctx.rows().begin);
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

TEST_CASE("what is no output is copied there, once it is gathered") {
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

TEST_CASE("outputs that were written where others are to stand change places") {
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
                                CHECK(a.data() == twice + ctx.rows().begin);
                                CHECK(b.data() == same + ctx.rows().begin);
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
                             CHECK(a.data() == x + ctx.rows().begin);
                             std::map<std::string, std::vector<Tensor<int, 1>>> result;
                             result["x"].push_back(a);
                             return result;
                           },
                           host_devices(2)};
  maps.into(map)(five);
  CHECK(map["x"][0].data() == x);
  CHECK(listed(map["x"][0]) == std::vector{2, 4, 6, 8, 10});
}

TEST_CASE("what is assigned to a variable never stands in the destination of another result") {
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
             "output[2][7]", "this key"));
  map.emplace(7, Tensor<int, 1>(5));
  CHECK_NOTHROW(model.into(std::tie(fits, numbers, map))(five));
}

TEST_CASE("into runs on all devices where it is asked to") {
  const ParallelModel model{[](Context auto& ctx) { return ctx.rank(); }, host_devices(3)};
  Tensor<std::size_t, 1> ranks(3);
  model.into(ranks)(fanout::on_all());
  CHECK(ranks[2] == 2);
}
