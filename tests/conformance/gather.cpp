// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules 72 and 91 to 123 of docs/conformance.md: what becomes of what the replicas return.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/fanout.hpp>

#include "conformance/shards.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using conformance::count_to;
using conformance::gathered_from;
using conformance::values;
using fanout::Context;
using fanout::dict;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::pmean;
using fanout::psum;
using fanout::ShapeMismatch;
using fanout::StructureMismatch;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Map = std::map<std::string, int>;

/// A struct that the original would not gather.
struct Detections {
  Tensor<int, 1> boxes;
  std::vector<std::string> labels;
};

/// The mean loss of a line through the origin, and its gradient.
struct Line {
  double slope = 0.5;
  auto forward(View<const double, 1> x, View<const double, 1> y) const {
    double loss = 0;
    double gradient = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = slope * x[i] - y[i];
      loss += error * error;
      gradient += 2 * error * x[i];
    }
    const auto rows = static_cast<double>(x.size());
    return dict("loss"_k = pmean(loss / rows), "gradient"_k = pmean(gradient / rows), "sum"_k = psum(gradient));
  }
};

}  // namespace

TEST_CASE("rules 91 and 110: an optional with a value on only some replicas is an error") {
  for (const std::size_t without : {0U, 1U}) {
    const auto text = message_of<StructureMismatch>([without] {
      gathered_from(2, [without](std::size_t rank) {
        return std::pair{1, rank == without ? std::nullopt : std::optional(count_to(1))};
      });
    });
    CHECK(says(text, "some replicas returned a value and some did not", "output[1]", without == 0 ? "none" : "a value",
               "shard 0 on host:0", "shard 1 on host:1, rows [2, 4)"));
  }
  CHECK_FALSE(gathered_from(2, [](std::size_t) { return std::optional<Tensor<int, 1>>(); }).has_value());
}

TEST_CASE("rule 92: arrays are concatenated in the order of the rows") {
  const auto rows = gathered_from(3, [](std::size_t rank) { return Tensor<int, 1>(count_to(rank + 1)); });
  CHECK(values(rows) == std::vector{0, 0, 1, 0, 1, 2});
}

TEST_CASE("rules 93 and 94: a number becomes one per shard, with one shard too, or what the model asks for") {
  for (int shards = 1; shards <= 3; ++shards) {
    const auto [each, sum, mean, stacked] = gathered_from(shards, [](std::size_t rank) {
      return std::tuple{static_cast<int>(rank), psum(2), pmean(1.5), fanout::stack(count_to(2))};
    });
    CHECK(values(each) == values(count_to(static_cast<std::size_t>(shards))));
    CHECK(sum == 2 * shards);
    CHECK(mean == 1.5);
    CHECK(stacked.extents() == fanout::Extents<2>{static_cast<std::size_t>(shards), 2});
  }
}

TEST_CASE("rule 96: arrays with different numbers of axes are refused") {
  using Ranks = std::variant<Tensor<int, 1>, Tensor<int, 2>>;
  CHECK(says(message_of<StructureMismatch>([] {
               gathered_from(2, [](std::size_t rank) {
                 return rank == 0 ? Ranks(Tensor<int, 1>(2)) : Ranks(Tensor<int, 2>(2, 1));
               });
             }),
             "different alternatives", "output", "Tensor<int, 1", "Tensor<int, 2", "shard 1 on host:1"));
}

TEST_CASE("rule 97: trailing extents that differ are an error with place, shards and both extents") {
  CHECK(says(message_of<ShapeMismatch>(
                 [] { gathered_from(2, [](std::size_t rank) { return dict("x"_k = Tensor<int, 2>(2, rank + 3)); }); }),
             "output.x", "[2, 3]", "shard 0 on host:0, rows [0, 2)", "[2, 4]", "shard 1 on host:1, rows [2, 4)"));
}

TEST_CASE("rules 98 and 99: arrays anywhere in host memory are gathered") {
  const auto outside = count_to(3);
  const auto rows = gathered_from(2, [&](std::size_t) { return outside.view(); });
  CHECK(values(rows) == std::vector{0, 1, 2, 0, 1, 2});
}

TEST_CASE("rules 101 and 102: a result is contiguous, row-major and owned by the caller, also of one replica") {
  const Tensor<int, 2> outside(2, 3);
  for (int shards = 1; shards <= 2; ++shards) {
    auto first = gathered_from(shards, [&](std::size_t) { return outside.view(); });
    CHECK(first.extents() == fanout::Extents<2>{2 * static_cast<std::size_t>(shards), 3});
    CHECK(first.row(1).data() == first.data() + 3);
    CHECK(first.data() != outside.data());
    first(0, 0) = 1;
    CHECK(outside(0, 0) == 0);
  }
}

TEST_CASE("rule 103: maps must have the same keys, and the error names those that differ") {
  CHECK(says(message_of<StructureMismatch>([] {
               gathered_from(2, [](std::size_t rank) { return rank == 0 ? Map{{"a", 1}, {"b", 2}} : Map{{"a", 1}}; });
             }),
             "different keys", "output", "no \"b\"", "shard 1 on host:1"));
  CHECK(says(message_of<StructureMismatch>([] {
               gathered_from(2, [](std::size_t rank) { return rank == 0 ? Map{{"a", 1}} : Map{{"c", 1}}; });
             }),
             "no \"a\"", "also \"c\""));
  const auto same = gathered_from(2, [](std::size_t rank) { return Map{{"b", 1}, {"a", static_cast<int>(rank)}}; });
  CHECK(values(same.at("a")) == std::vector{0, 1});
}

TEST_CASE("rule 104: vectors of trees must have the same length") {
  CHECK(says(message_of<StructureMismatch>(
                 [] { gathered_from(2, [](std::size_t rank) { return std::vector(3 - rank, count_to(2)); }); }),
             "different lengths", "output", "expected 3 trees", "found 2", "shard 1 on host:1"));
}

TEST_CASE("rule 105: empty containers are gathered to themselves") {
  const auto [vector, map, tuple, none] = gathered_from(2, [](std::size_t) {
    return std::tuple{std::vector<Tensor<int, 1>>(), Map(), std::tuple{}, dict()};
  });
  CHECK(vector.empty());
  CHECK(map.empty());
  static_assert(std::is_same_v<decltype(tuple), const std::tuple<>>);
  static_assert(std::is_same_v<decltype(none), const fanout::Dict<>>);
}

TEST_CASE("rules 106 and 109: a struct is gathered to the same struct") {
  const Detections all = gathered_from(2, [](std::size_t rank) {
    return Detections{count_to(rank + 1), std::vector<std::string>(rank + 1, "cat")};
  });
  CHECK(values(all.boxes) == std::vector{0, 0, 1});
  CHECK(all.labels.size() == 3);
}

TEST_CASE("rules 107 and 108: numbers, truth values and texts are gathered, one per shard") {
  const auto [real, truth, text] = gathered_from(2, [](std::size_t rank) {
    return std::tuple{0.5 + static_cast<double>(rank), rank == 1, "shard " + std::to_string(rank)};
  });
  CHECK(real[1] == 1.5);
  CHECK(truth[1]);
  CHECK(text == std::vector<std::string>{"shard 0", "shard 1"});
}

TEST_CASE("rule 111: containers of different kinds do not mix") {
  using Either = std::variant<std::vector<int>, Map>;
  CHECK(says(message_of<StructureMismatch>([] {
               gathered_from(2, [](std::size_t rank) {
                 return rank == 0 ? Either(std::vector{1}) : Either(Map{{"a", 1}});
               });
             }),
             "different alternatives", "output", "std::vector<int>", "std::map<", "shard 1 on host:1"));
}

TEST_CASE("rule 115: results of any depth come back with the types that they had") {
  const auto leaf = [](std::size_t rank) { return Tensor<int, 1>(rank + 1); };
  const auto all = gathered_from(2, [&](std::size_t rank) {
    return std::tuple{leaf(rank), dict("maps"_k = std::map<int, std::vector<std::pair<Tensor<int, 1>, int>>>{
                                           {7, {{leaf(rank), 1}, {leaf(rank), 2}}}})};
  });
  using Inside = std::pair<Tensor<int, 1>, Tensor<int, 1>>;  // the number becomes one per shard
  static_assert(
      std::is_same_v<std::remove_cvref_t<decltype(std::get<1>(all)["maps"_k])>, std::map<int, std::vector<Inside>>>);
  CHECK(std::get<0>(all).size() == 3);
  const Inside& inside = std::get<1>(all)["maps"_k].at(7).at(1);
  CHECK(inside.first.size() == 3);
  CHECK(values(inside.second) == std::vector{2, 2});
}

TEST_CASE("rule 72: each array, in and out, has its own batch axis, and its other extents must agree") {
  Tensor<int, 2> sequences(3, 4);  // [time, batch]
  for (std::size_t i = 0; i < 12; ++i) sequences.data()[i] = static_cast<int>(i);
  const ParallelModel model{[](View<const int, 2> part, View<const int, 1> lengths, std::size_t shorter) {
                              return std::pair{fanout::concat<1>(part.rows({0, part.extent(0) - shorter})), lengths};
                            },
                            host_devices(2)};
  const auto [packed, lengths] = model(fanout::split<1>(sequences), count_to(4), 1U);
  CHECK(packed.extents() == fanout::Extents<2>{2, 4});
  CHECK(packed(1, 3) == 7);
  CHECK(values(lengths) == std::vector{0, 1, 2, 3});
  CHECK(says(message_of<ShapeMismatch>([] {
               gathered_from(2, [](std::size_t rank) { return fanout::concat<1>(Tensor<int, 2>(3 + rank, 1)); });
             }),
             "output", "[3, :]", "[4, 1]"));
}

TEST_CASE("rules 116 and 122: gradients and losses are those of one device, also with chunks of different sizes") {
  std::vector<double> x(13);
  std::iota(x.begin(), x.end(), 1);
  const std::vector<double> y(13, 2.0);
  const auto one = ParallelModel{Line{}, host_devices(1)}(x, y);
  for (int devices = 2; devices <= 4; ++devices) {
    const auto all = ParallelModel{Line{}, host_devices(devices)}(x, y);
    CHECK(all["loss"_k] == doctest::Approx(one["loss"_k]));
    CHECK(all["gradient"_k] == doctest::Approx(one["gradient"_k]));
    CHECK(all["sum"_k] == doctest::Approx(one["sum"_k]));
    CHECK(all["sum"_k] == doctest::Approx(13 * all["gradient"_k]));
  }
}

TEST_CASE("rule 117: sums are made in the order of the rows, and are the same bit by bit in every run") {
  const auto part = [](std::size_t rank) { return std::pow(10.0, 17 - 9 * static_cast<double>(rank)) / 3; };
  const double in_order = ((part(0) + part(1)) + part(2)) + part(3);
  for (int run = 0; run < 20; ++run) {
    CHECK(gathered_from(4, [&](std::size_t rank) { return psum(part(rank)); }) == in_order);
  }
}

TEST_CASE("rule 118: summing different extents is an error, and the sum of one shard is its result") {
  const auto sum_of = [](int shards) {
    return gathered_from(shards, [](std::size_t rank) { return psum(Tensor<double, 2>(2, 3 + rank)); });
  };
  CHECK(says(message_of<ShapeMismatch>([&] { sum_of(2); }), "output", "[2, 3]", "[2, 4]", "psum"));
  CHECK(sum_of(1).extents() == fanout::Extents<2>{2, 3});
}
