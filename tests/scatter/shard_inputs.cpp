// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/device/host_device.hpp>
#include <fanout/scatter/shard_inputs.hpp>

#include "support/message_of.hpp"

using fanout::broadcast;
using fanout::host_devices;
using fanout::Plan;
using fanout::scatter;
using fanout::ShardInputs;
using fanout_test::message_of;
using fanout_test::says;

namespace {

const Plan plan_of_three{{.rows = {0, 1}, .device = 1}, {.rows = {1, 4}, .device = 0}, {.rows = {4, 5}, .device = 1}};
const std::vector<int> zero_to_four{0, 1, 2, 3, 4};

std::vector<int> listed(std::span<const int> rows) { return {rows.begin(), rows.end()}; }

}  // namespace

TEST_CASE("scatter splits arrays by a plan, in place, and gives every shard the other arguments") {
  const std::string text = "text";
  const auto inputs = scatter(plan_of_three, zero_to_four, text);
  REQUIRE(inputs.size() == 3);
  CHECK(inputs.plan == plan_of_three);
  const auto [rows, whole] = inputs[1];
  CHECK(rows.data() == &zero_to_four[1]);
  CHECK(rows.size() == 3);
  CHECK(&whole == &text);
}

TEST_CASE("scatter splits evenly between devices") {
  const auto inputs = scatter(host_devices(2), zero_to_four, 7);
  REQUIRE(inputs.size() == 2);
  CHECK(listed(std::get<0>(inputs[0])) == std::vector{0, 1, 2});
  CHECK(listed(std::get<0>(inputs[1])) == std::vector{3, 4});
  CHECK(std::get<1>(inputs[1]) == 7);
}

TEST_CASE("where there is nothing to split every device gets all of it, and no rows") {
  const auto inputs = scatter(host_devices(3), broadcast(zero_to_four));
  REQUIRE(inputs.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(&std::get<0>(inputs[i]) == &zero_to_four);
    CHECK(inputs.plan[i] == fanout::Shard{.rows = {0, 0}, .device = i});
  }
  CHECK(scatter(host_devices(2)).size() == 2);
}

TEST_CASE("inputs borrow lvalues and own rvalues, also after a move") {
  auto owned = std::make_shared<int>(3);
  const std::weak_ptr<int> watched = owned;
  {
    auto made = scatter(plan_of_three, std::vector(zero_to_four), std::move(owned), broadcast(std::string(100, 'b')),
                        zero_to_four);
    static_assert(
        std::is_same_v<decltype(made), ShardInputs<std::vector<int>, std::shared_ptr<int>,
                                                   decltype(broadcast(std::string())), const std::vector<int>&>>);
    const auto inputs = std::move(made);
    const auto [rows, pointer, text, borrowed] = inputs[2];
    CHECK(rows[0] == 4);
    CHECK(rows.data() != &zero_to_four[4]);
    CHECK(*pointer == 3);
    CHECK(text == std::string(100, 'b'));
    CHECK(borrowed.data() == &zero_to_four[4]);
    CHECK_FALSE(watched.expired());
  }
  CHECK(watched.expired());
}

TEST_CASE("inputs that do not have the plan's rows are refused") {
  CHECK(says(message_of<fanout::ShapeMismatch>([] {
               (void)scatter(plan_of_three, std::vector{1, 2});
             }),
             "at scatter", "expected 5 rows", "found 2"));
  CHECK(scatter(plan_of_three, 1).size() == 3);  // nothing to split fits every plan
}

TEST_CASE("inputs whose rows disagree are refused") {
  CHECK(says(message_of<fanout::ShapeMismatch>([] {
               (void)scatter(host_devices(2), zero_to_four, std::vector{1, 2});
             }),
             "input[0] and input[1]", "5 and 2"));
}

TEST_CASE("shard arguments are made for one memory, and an array elsewhere is refused") {
  const fanout::MemorySpace elsewhere{{.kind = "toy", .index = 0}};
  const fanout::View<const int, 1> there(zero_to_four.data(), fanout::Extents<1>{5}, elsewhere);
  const auto inputs = scatter(plan_of_three, there);
  CHECK(std::get<0>(inputs.pieces(0, {.space = elsewhere})).space() == elsewhere);
  CHECK_THROWS_AS((void)inputs[0], fanout::DeviceMismatch);
}
