// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fanout/parallel/shard_outputs.hpp>

namespace {

using fanout::CallFrame;
using fanout::Plan;
using fanout::ShardOutputs;
using fanout::ShardSlot;

const std::vector<fanout::DeviceId> two_hosts{{.kind = "host", .index = 0}, {.kind = "host", .index = 1}};
const Plan four_rows{{.rows = {0, 2}, .device = 0}, {.rows = {2, 3}, .device = 1}, {.rows = {3, 4}, .device = 0}};

/// Runs the shards one by one, the last first.
const auto backwards = [](const Plan& shards, const auto& body) {
  for (std::size_t i = shards.size(); i > 0; --i) body(i - 1);
};

}  // namespace

TEST_CASE("what the shards return stands in row order, in whatever order they ran") {
  ShardOutputs<int> outputs(four_rows, {}, two_hosts, backwards,
                            [](std::size_t i, CallFrame& frame, ShardSlot<int>& slot) {
                              slot.fill([&] { return static_cast<int>(10 * i + frame.plan[i].rows.size()); });
                            });
  REQUIRE(outputs.size() == 3);
  CHECK(outputs[0] == 2);
  CHECK(outputs[2] == 21);
  const auto all = fanout::gather(std::move(outputs));
  CHECK(std::vector<int>(all.begin(), all.end()) == std::vector{2, 11, 21});
}

TEST_CASE("nothing may be returned") {
  int runs = 0;
  ShardOutputs<void> outputs(four_rows, {}, two_hosts, backwards,
                             [&runs](std::size_t, CallFrame&, ShardSlot<void>& slot) { slot.fill([&] { ++runs; }); });
  fanout::gather(std::move(outputs));
  CHECK(runs == 3);
}

TEST_CASE("what is thrown before forward goes before what forward throws") {
  const auto run = [](std::size_t i, CallFrame&, ShardSlot<int>& slot) {
    if (i == 1) throw fanout::DeviceMismatch("before");
    slot.failed_in_forward = true;
    throw std::runtime_error("in forward");
  };
  CHECK_THROWS_AS(ShardOutputs<int>(four_rows, {}, two_hosts, backwards, run), fanout::DeviceMismatch);
}

TEST_CASE("what a shard returned is destroyed, also where another shard threw") {
  const auto counted = std::make_shared<int>(1);
  const auto run = [&counted](std::size_t i, CallFrame&, ShardSlot<std::shared_ptr<int>>& slot) {
    slot.failed_in_forward = true;
    slot.fill([&] {
      if (i == 0) throw std::runtime_error("in forward");
      return counted;
    });
  };
  using Outputs = ShardOutputs<std::shared_ptr<int>>;
  CHECK_THROWS_AS(Outputs(four_rows, {}, two_hosts, backwards, run), fanout::ReplicaError);
  CHECK(counted.use_count() == 1);
}

TEST_CASE("what is to be done at the end is done once, when all shards have ended well") {
  int runs = 0;
  int ends = 0;
  bool fail = false;
  const auto run = [&](std::size_t i, CallFrame&, ShardSlot<void>&) {
    ++runs;
    if (fail && i == 1) throw std::runtime_error("in forward");
  };
  const auto end = [&] {
    CHECK(runs == 3);
    ++ends;
  };
  const ShardOutputs<void> well(four_rows, {}, two_hosts, backwards, run, end);
  CHECK(ends == 1);
  fail = true;
  CHECK_THROWS(ShardOutputs<void>(four_rows, {}, two_hosts, backwards, run, end));
  CHECK(ends == 1);
}
