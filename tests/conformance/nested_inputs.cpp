// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules 16 to 36 of docs/conformance.md: what each shard is passed of nested and of several arguments.
#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "conformance/shards.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using conformance::count_to;
using conformance::look_at_shards;
using conformance::Tell;
using conformance::values;
using fanout::Context;
using fanout::dict;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::ShapeMismatch;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Texts = std::vector<std::string>;

/// A struct with arrays: what a named tuple and a data class are to the original.
struct Sample {
  View<const int, 1> x;
  std::span<const int> labels;
  int epoch;
};

struct Nothing {};

/// What is no tree.
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {}
  std::size_t size() const { return words_.size(); }

 private:
  std::vector<std::string> words_;
};

}  // namespace

TEST_CASE("rule 16: arrays are split first, then tuples, vectors and maps by element, and all else goes whole") {
  const auto x = count_to(4);
  look_at_shards(
      2,
      []<class... Handed>(std::size_t, const Handed&...) {
        static_assert(
            std::is_same_v<std::tuple<Handed...>,
                           std::tuple<View<const int, 1>, std::span<const int>, std::span<const std::string>,
                                      std::tuple<View<const int, 1>, const int&>, std::vector<View<const int, 1>>,
                                      std::map<std::string, View<const int, 1>>, Vocabulary>>);
      },
      x, std::vector{1, 2, 3, 4}, std::vector<std::string>(4), std::tuple{x, 1}, std::vector{x, x},
      std::map<std::string, Tensor<int, 1>>{{"x", x}}, Vocabulary({"a", "b"}));
}

TEST_CASE("rule 17: an argument that is no array is the same const object for all replicas") {
  const std::string text = "text";
  const std::optional<int> none;
  const std::map<int, std::string> map{{1, "one"}};
  const Vocabulary vocabulary({"a", "b"});
  look_at_shards(
      2,
      [&](std::size_t, const View<const int, 1>&, auto& own_text, auto& own_none, auto& own_map, auto& own_words) {
        static_assert(std::is_const_v<std::remove_reference_t<decltype(own_map)>>);
        CHECK(&own_text == &text);
        CHECK(&own_none == &none);
        CHECK(&own_map == &map);
        CHECK(&own_words == &vocabulary);
      },
      count_to(4), text, none, map, vocabulary);
}

TEST_CASE("rules 18 and 23: containers are rebuilt around the rows, with their kind and keys") {
  const std::map<std::string, Tensor<int, 1>, std::greater<>> map{{"a", count_to(4)}, {"b", count_to(4)}};
  look_at_shards(
      2,
      [](std::size_t rank, const auto& rows) {
        static_assert(std::is_same_v<decltype(rows), const std::map<std::string, View<const int, 1>, std::greater<>>&>);
        CHECK(rows.begin()->first == "b");
        CHECK(rows.size() == 2);
        CHECK(rows.at("a")[0] == static_cast<int>(2 * rank));
      },
      map);
}

TEST_CASE("rule 19: a struct keeps its type and its members' names") {
  const auto x = count_to(4);
  const std::vector labels{0, 1, 0, 1, 0};
  CHECK(says(message_of<ShapeMismatch>([&] {
               (void)fanout::batch_rows(Sample{x, labels, 1});
             }),
             "input[0].x", "input[0].labels"));
}

TEST_CASE("rule 20: a plain struct is split, member by member") {
  const auto x = count_to(4);
  const std::vector labels{0, 1, 2, 3};
  look_at_shards(
      2,
      [](std::size_t rank, const Sample& rows) {
        CHECK(rows.x.size() == 2);
        CHECK(rows.x[0] == static_cast<int>(2 * rank));
        CHECK(rows.labels[1] == static_cast<int>(2 * rank + 1));
        CHECK(rows.epoch == 7);
      },
      Sample{x, labels, 7});
}

TEST_CASE("rules 21 and 22: empty containers and structs go to every replica as they are") {
  const std::vector<Tensor<int, 1>> vector;
  const std::map<std::string, Tensor<int, 1>> map;
  const std::optional<Tensor<int, 1>> none;
  int shards = 0;
  const ParallelModel model{[](Context auto& ctx, View<const int, 1>, const auto& nested) {
                              return ctx.rank() + std::get<0>(nested).size() + std::get<1>(nested).size() +
                                     (std::get<2>(nested).has_value() ? 1U : 0U);
                            },
                            host_devices(2)};
  for (const std::size_t rank : model(count_to(4), std::tuple{vector, map, none, Nothing{}, std::tuple{}, dict()})) {
    CHECK(rank == static_cast<std::size_t>(shards));
    ++shards;
  }
  CHECK(shards == 2);
}

TEST_CASE("rule 24: a vector of strings is split by element, unless it is broadcast or marked each") {
  const std::vector<std::string> words{"a", "b", "c", "d"};
  look_at_shards(
      2,
      [&](std::size_t rank, std::span<const std::string> rows, const std::vector<std::string>& whole,
          const std::vector<std::string>& list) {
        CHECK(rows.size() == 2);
        CHECK(rows.data() == &words[2 * rank]);
        CHECK(&whole == &words);
        CHECK(&list == &words);
      },
      words, fanout::broadcast(words), fanout::each(words));
}

TEST_CASE("rule 25: a vector of tensors is split inside each tensor, or by element with rows") {
  const std::vector tensors{count_to(4), count_to(4), count_to(4)};
  look_at_shards(
      2,
      [&](std::size_t rank, const std::vector<View<const int, 1>>& rows) {
        CHECK(rows.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) CHECK(rows[i].data() == &tensors[i][2 * rank]);
      },
      tensors);
  look_at_shards(
      2,
      [&](std::size_t rank, std::span<const Tensor<int, 1>> some) {
        CHECK(some.size() == (rank == 0 ? 2 : 1));
        CHECK(some.data() == &tensors[2 * rank]);
      },
      fanout::rows(tensors));
}

TEST_CASE("rule 26: inputs of different lengths are an error that names both, and no rows are dropped") {
  const ParallelModel model{Tell{}, host_devices(2)};
  CHECK(says(message_of<ShapeMismatch>([&] {
               model(std::tuple{count_to(5), count_to(1)});
             }),
             "arguments have different numbers of rows", "input[0][0]", "input[0][1]", "5 and 1", "broadcast(x)"));
}

TEST_CASE("rule 27: scatter returns the same kind of result for all arguments") {
  const auto x = count_to(4);
  const auto devices = host_devices(2);
  const auto bare = fanout::scatter(devices, x);
  const auto nested = fanout::scatter(devices, std::pair{x, 1}, dict("x"_k = x));
  CHECK(bare.size() == 2);
  CHECK(nested.size() == 2);
  CHECK(bare.plan == nested.plan);
  static_assert(std::tuple_size_v<decltype(bare[0])> == 1);
  static_assert(std::tuple_size_v<decltype(nested[0])> == 2);
}

TEST_CASE("rules 28, 29 and 31: one plan for all arguments, so that no shard lacks one") {
  const ParallelModel model{[](Context auto& ctx, View<const int, 1> x, const auto& more, int delta) {
                              CHECK(x.size() == ctx.rows().size());
                              CHECK(more["mask"_k].size() == ctx.rows().size());
                              return delta;
                            },
                            host_devices(4)};
  for (std::size_t rows = 1; rows <= 9; ++rows) {
    const auto deltas = model(count_to(rows), dict("mask"_k = count_to(rows)), 3);
    CHECK(values(deltas) == std::vector<int>(rows < 4 ? rows : 4, 3));
  }
}

TEST_CASE("rule 30: an entry of a dict with a row less than the other arguments is an error") {
  const ParallelModel model{Tell{}, host_devices(4)};
  CHECK(says(message_of<ShapeMismatch>([&] { model(count_to(10), dict("mask"_k = count_to(9))); }), "input[0]",
             "input[1].mask", "10 and 9"));
}

TEST_CASE("rule 32: a call with named arguments alone has as many shards as their rows make") {
  const ParallelModel model{Tell{}, host_devices(4)};
  CHECK(model(dict("x"_k = count_to(3), "delta"_k = 3)) == Texts{"host:0[0, 1)", "host:1[1, 2)", "host:2[2, 3)"});
}

TEST_CASE("rule 33: with nothing to split one replica runs, or all if that is asked for") {
  const ParallelModel model{Tell{}, host_devices(4)};
  CHECK(model(1, "text", std::optional<double>()) == Texts{"host:0[0, 0)"});
  CHECK(model(fanout::on_all(), 1, "text").size() == 4);
}

TEST_CASE("rule 34: a call without arguments runs one replica, on the main device") {
  const ParallelModel model{Tell{}, host_devices(2)};
  CHECK(model() == Texts{"host:0[0, 0)"});
}

TEST_CASE("rule 35: the four functions take the arguments as a call does, and wrap none in a tuple") {
  const auto x = count_to(4);
  const auto devices = host_devices(2);
  const auto replicas = fanout::replicate(Tell{}, devices);
  CHECK(fanout::gather(fanout::apply(replicas, fanout::scatter(devices, x))) == Texts{"host:0[0, 2)", "host:1[2, 4)"});
  look_at_shards(
      2, [](std::size_t, const std::tuple<View<const int, 1>>& one) { CHECK(std::get<0>(one).size() == 2); },
      std::tuple{x});
}

TEST_CASE("rule 36: each argument, or a part of one, says itself whether and on which axis it is split") {
  const auto table = count_to(7);
  const Tensor<int, 2> series(3, 4);
  const ParallelModel model{[&](Context auto&, View<const int, 1> rows, const Tensor<int, 1>& whole,
                                View<const int, 2> columns, const auto& mixed) {
                              CHECK(rows.size() == 2);
                              CHECK(&whole == &table);
                              CHECK(columns.extents() == fanout::Extents<2>{3, 2});
                              CHECK(mixed["columns"_k].extents() == fanout::Extents<2>{3, 2});
                              CHECK(&mixed["whole"_k] == &table);
                            },
                            host_devices(2)};
  model(count_to(4), fanout::broadcast(table), fanout::split<1>(series),
        dict("columns"_k = fanout::split<1>(series), "whole"_k = fanout::broadcast(table)));
}
