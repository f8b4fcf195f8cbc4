// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::apply;
using fanout::Context;
using fanout::host_devices;
using fanout::Original;
using fanout::Plan;
using fanout::replicate;
using fanout::scatter;
using fanout_test::message_of;
using fanout_test::says;

namespace {

struct Model {
  auto forward(Context auto& ctx, std::span<const int> x, const std::string& text) const {
    if (text == "throw") throw std::runtime_error(std::to_string(ctx.rank()));
    return std::pair{static_cast<int>(ctx.rank()), std::vector<int>(x.begin(), x.end())};
  }
};

struct Anything {
  struct Own {
    int value;
  };
  Own forward(std::span<const int> x) const { return {x[0]}; }
};

const Plan plan{{.rows = {0, 1}, .device = 1}, {.rows = {1, 4}, .device = 0}, {.rows = {4, 5}, .device = 1}};
const std::vector<int> five{0, 1, 2, 3, 4};

}  // namespace

TEST_CASE("scatter, replicate, apply and gather are usable alone, with more shards than devices") {
  const Original<Model> original{.model = {}};
  const auto replicas = replicate(original, host_devices(2));
  const std::string text = "text";
  auto outputs = apply(replicas, plan, scatter(plan, five, text));
  REQUIRE(outputs.size() == 3);
  CHECK(outputs.plan() == plan);
  CHECK(outputs[1].first == 1);
  CHECK(outputs[1].second == std::vector{1, 2, 3});
  const auto [ranks, rows] = fanout::gather(std::move(outputs));
  REQUIRE(ranks.size() == 3);
  CHECK(ranks[2] == 2);
  CHECK(rows == five);
}

TEST_CASE("results that cannot be gathered can still be looked at shard by shard") {
  const Original<Anything> original{.model = {}};
  const auto replicas = replicate(original, host_devices(2));
  const auto outputs = apply(replicas, plan, scatter(plan, five));
  CHECK(outputs[2].value == 4);
}

TEST_CASE("pieces for another plan and plans for other devices are refused") {
  const Original<Model> original{.model = {}};
  const auto replicas = replicate(original, host_devices(2));
  const std::string text = "text";
  const Plan other{{.rows = {0, 5}, .device = 0}};
  const auto pieces = scatter(plan, five, text);
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { (void)apply(replicas, other, pieces); }), "apply", "1 shards",
             "found 3"));
  const auto one = replicate(original, host_devices(1));
  CHECK_THROWS_AS((void)apply(one, plan, pieces), fanout::InvalidArgument);
}

TEST_CASE("what forward throws on a shard is a failure of that shard's device") {
  const Original<Model> original{.model = {}};
  const auto replicas = replicate(original, host_devices(2));
  const std::string text = "throw";
  try {
    (void)apply(replicas, plan, scatter(plan, five, text));
    CHECK_MESSAGE(false, "nothing was thrown");
  } catch (const fanout::ReplicaError& error) {
    REQUIRE(error.failures().size() == 3);
    CHECK(error.failures()[0].device.index == 1);
    CHECK(error.failures()[1].device.index == 0);
    CHECK(error.failures()[2].rows == fanout::RowRange{4, 5});
  }
}

TEST_CASE("what makes the pieces may throw: it is thrown as itself, after all shards have ended") {
  const Original<Model> original{.model = {}};
  const auto replicas = replicate(original, host_devices(2));
  const std::string text = "text";
  const auto pieces = [&](std::size_t i, const fanout::MemorySpace& space) {
    if (i == 1) throw std::out_of_range("no pieces");
    return scatter(plan[i], space, five, text);
  };
  CHECK_THROWS_AS((void)apply(replicas, fanout::CallSettings{.plan = plan}, pieces), std::out_of_range);
}
