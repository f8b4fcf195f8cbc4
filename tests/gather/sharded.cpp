// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/gather/sharded.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::Context;
using fanout::dict;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Sharded;
using fanout::sharded;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;
using namespace fanout::literals;

namespace {

Tensor<int, 2> counted(std::size_t rows, std::size_t columns) {
  Tensor<int, 2> tensor(rows, columns);
  int next = 0;
  for (int& x : tensor) x = next++;
  return tensor;
}

std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

}  // namespace

TEST_CASE("sharded results are passed to the next call without a copy, and gather concatenates them") {
  const auto x = counted(7, 2);
  const ParallelModel first_half{[](Context auto& ctx, View<const int, 2> rows) {
                                   auto output = fanout::output<int>(ctx, 2);
                                   for (std::size_t i = 0; i < rows.size(); ++i) output.data()[i] = rows.data()[i] + 1;
                                   return std::tuple{sharded(output), address(output.data())};
                                 },
                                 host_devices(3)};
  auto [left, made] = first_half(x);
  static_assert(std::is_same_v<decltype(left), Sharded<Tensor<int, 2>>>);
  REQUIRE(left.size() == 3);
  CHECK(left.plan() == first_half.plan(7));
  CHECK(left.devices()[2] == fanout::DeviceId{.kind = "host", .index = 2});
  for (std::size_t i = 0; i < 3; ++i) CHECK(address(left[i].data()) == made[i]);

  const ParallelModel second_half{[](Context auto& ctx, View<const int, 2> rows, View<const int, 2> beside) {
                                    CHECK(rows.extents() == beside.extents());
                                    CHECK(rows.extent(0) == ctx.rows().size());
                                    return std::tuple{address(rows.data()), ctx.device().id().index,
                                                      rows.empty() || rows(0, 0) == beside(0, 0) + 1};
                                  },
                                  host_devices(4), fanout::Options{.split = fanout::WeightedSplit{1, 2, 3, 4}}};
  const auto [seen, device, same] = second_half(left, x);
  REQUIRE(seen.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(seen[i] == made[i]);
    CHECK(device[i] == static_cast<int>(i));
    CHECK(same[i]);
  }

  const auto copied = gather(left);
  const auto whole = gather(std::move(left));
  CHECK(whole.extents() == x.extents());
  CHECK(address(whole.data()) == made[0]);  // the buffer that all shards filled
  CHECK(address(copied.data()) != made[0]);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(whole.data()[i] == x.data()[i] + 1);
    CHECK(copied.data()[i] == x.data()[i] + 1);
  }
}

TEST_CASE("an output may be gathered and stay sharded, in any order") {
  const auto x = counted(7, 2);
  const ParallelModel model{[](Context auto& ctx, View<const int, 2> rows) {
                              auto output = fanout::output<int>(ctx, 2);
                              fanout::copy(rows, output);
                              return std::tuple{sharded(output), output, sharded(output)};
                            },
                            host_devices(3)};
  auto [before, gathered, after] = model(x);
  CHECK(gathered == x);
  for (int& number : gathered) number = -1;
  gathered = Tensor<int, 2>();
  CHECK(gather(before) == x);
  CHECK(gather(after) == x);
}

TEST_CASE("a result that stays sharded does not use the memory of a destination") {
  const auto x = counted(7, 2);
  const ParallelModel model{[](Context auto& ctx, View<const int, 2> rows) {
                              auto output = fanout::output<int>(ctx, 2);
                              fanout::copy(rows, output);
                              return std::pair{output, sharded(Tensor<int, 2>(output))};
                            },
                            host_devices(2)};
  auto [whole, kept] = model(Tensor<int, 2>(7, 2));
  model.into(std::tie(whole, kept))(x);
  CHECK(whole == x);
  for (int& number : whole) number = -1;
  CHECK(gather(kept) == x);
}

TEST_CASE("a tree can stay sharded, and each shard is passed its own part again") {
  struct State {
    Tensor<int, 2> rows;
    double loss;
  };
  const auto x = counted(4, 3);
  const ParallelModel begin{[](View<const int, 2> rows) {
                              return dict(
                                  "tree"_k = sharded(std::tuple{rows, 1.5, std::string("text"), std::vector{1, 2, 3}}),
                                  "state"_k = sharded(State{Tensor<int, 2>(rows), 0.5}), "n"_k = sharded(rows(0, 0)));
                            },
                            host_devices(2)};
  const auto result = begin(x);
  CHECK(address(std::get<0>(result["tree"_k][0]).data()) != address(x.data()));  // a view was copied
  const ParallelModel next{
      [](const std::tuple<View<const int, 2>, const double&, const std::string&, std::span<const int>>& tree,
         const State& state, int n) {
        const auto& [rows, number, text, three] = tree;
        CHECK(number == 1.5);
        CHECK(text == "text");
        CHECK(three.size() == 3);  // a shard's own rows need not be those of the batch
        CHECK(rows(0, 0) == n);
        return std::tuple{rows, state.rows(1, 2), state.loss};
      },
      host_devices(2)};
  const auto [rows, last, loss] = next(result["tree"_k], result["state"_k], result["n"_k]);
  CHECK(std::vector(rows.begin(), rows.end()) == std::vector(x.begin(), x.end()));
  CHECK(std::vector(last.begin(), last.end()) == std::vector{5, 11});
  CHECK(loss[1] == 0.5);
  CHECK(std::get<3>(gather(result["tree"_k])).size() == 6);
}

TEST_CASE("a sharded argument goes with arguments of as many rows, if they are sharded alike") {
  const ParallelModel pass{[](std::span<const int> rows) { return sharded(rows); }, host_devices(3)};
  const ParallelModel by_weight{[](std::span<const int> rows) { return sharded(rows); }, host_devices(3),
                                fanout::Options{.split = fanout::WeightedSplit{3, 2, 1}}};
  const std::vector six{1, 2, 3, 4, 5, 6};
  const auto even = pass(six);
  const auto weighted = by_weight(six);
  const ParallelModel two{[](std::span<const int> a, std::span<const int> b) { return a.size() == b.size(); },
                          host_devices(3)};
  CHECK(two(even, pass(six))[2]);
  CHECK(two(weighted, six)[0]);  // its plan counts, not the model's
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { two(even, weighted); }), "sharded in different ways",
             "input[0] and input[1]", "[0, 2) on 0, [2, 4) on 1, [4, 6) on 2", "[0, 3) on 0"));
  CHECK(
      says(message_of<fanout::ShapeMismatch>([&] { two(even, std::vector{1}); }), "input[0] and input[1]", "6 and 1"));
  const ParallelModel fewer{[](std::span<const int>) {}, host_devices(2)};
  CHECK(says(message_of<fanout::InvalidArgument>([&] { fewer(even); }), "expected 2 devices or fewer", "on 2",
             "gather()"));
  CHECK_NOTHROW(fewer(gather(even)));
  const auto inputs = scatter(host_devices(3), even);
  CHECK(inputs.plan == even.plan());
  CHECK_THROWS_AS((void)scatter(fanout::EvenSplit{}(6, 2), even), fanout::ShapeMismatch);
}

TEST_CASE("shards without rows are left sharded as well") {
  const ParallelModel pass{[](std::span<const int> rows) { return sharded(rows); }, host_devices(3)};
  const auto none = pass(std::vector<int>());
  CHECK(none.size() == 3);
  const ParallelModel count{[](std::span<const int> rows) { return fanout::psum(rows.size()); }, host_devices(3)};
  CHECK(count(none) == 0);
  CHECK(gather(none).empty());
}

TEST_CASE("a result that stayed sharded over other devices is refused, and on as many devices it decides on the plan") {
  const auto keep = [](View<const int, 2> rows) { return sharded(Tensor<int, 2>(rows)); };
  const auto left = ParallelModel{keep, host_devices(4)}(counted(7, 2));
  const ParallelModel three{[](View<const int, 2> rows) { return rows.extent(0); }, host_devices(3)};
  CHECK(says(message_of<fanout::InvalidArgument>([&] { three(left); }), "sharded over other devices",
             "3 devices or fewer"));
  const Sharded<Tensor<int, 2>> on_two = ParallelModel{keep, host_devices(2)}(counted(7, 2));
  CHECK(three(fanout::on_all(), on_two).size() == 2);
}
