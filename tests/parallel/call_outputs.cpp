// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

#include <fanout/parallel/call_outputs.hpp>

namespace {

using fanout::CallFrame;
using fanout::Completion;
using fanout::Plan;
using fanout::ShardSlot;
using fanout::detail::ShardsRoom;
using Outputs = fanout::detail::CallOutputs<int>;

const fanout::DeviceId two_hosts[] = {{.kind = "toy", .index = 7}, {.kind = "host", .index = 0}};
const Plan two_and_one{{.rows = {0, 2}, .device = 1}, {.rows = {2, 3}, .device = 0}};

const auto in_turn = [](const Plan& shards, const auto& body) {
  for (std::size_t i = 0; i < shards.size(); ++i) body(i);
};
const auto nothing_more = [] {};

}  // namespace

TEST_CASE("a call borrows its plan, and puts together what its shards returned") {
  ShardsRoom room;
  Outputs outputs(two_and_one, {}, two_hosts, room);
  CHECK(&outputs.plan() == &two_and_one);
  int finished = 0;
  outputs.run_all(
      in_turn,
      [](std::size_t i, CallFrame& frame, ShardSlot<int>& slot) {
        slot.fill([&] { return static_cast<int>(10 * i + frame.plan[i].rows.size()); });
      },
      [&finished] { ++finished; });
  CHECK(finished == 1);
  CHECK(outputs[1].value() == 11);
  const auto all = outputs.gather();
  CHECK(std::vector<int>(all.begin(), all.end()) == std::vector{2, 11});
}

TEST_CASE("a shard's device is the one at the place in the set that the plan names") {
  ShardsRoom room;
  Outputs outputs(two_and_one, {}, two_hosts, room);
  const auto fail = [](std::size_t i, CallFrame&, ShardSlot<int>& slot) {
    slot.failed_in_forward = true;
    if (i == 1) throw std::runtime_error("in forward");
  };
  try {
    outputs.run_all(in_turn, fail, nothing_more);
    FAIL("nothing was thrown");
  } catch (const fanout::ReplicaError& error) {
    REQUIRE(error.failures().size() == 1);
    CHECK(error.failures()[0].shard == 1);
    CHECK(error.failures()[0].device == two_hosts[0]);
  }
}

TEST_CASE("what a device goes on with is waited for before the end, and what fails there is the shard's") {
  int waits = 0;
  const auto go_on = [&waits](std::size_t, CallFrame&, ShardSlot<int>& slot) {
    slot.fill([] { return 1; });
    slot.completion = Completion([](void* counter) { ++*static_cast<int*>(counter); }, &waits);
  };
  ShardsRoom room;
  Outputs outputs(two_and_one, {}, two_hosts, room);
  outputs.run_all(in_turn, go_on, [&waits] { CHECK(waits == 2); });

  Outputs failing(two_and_one, {}, two_hosts, room);
  const auto fail = [](std::size_t i, CallFrame&, ShardSlot<int>& slot) {
    slot.fill([] { return 1; });
    if (i == 0) slot.completion = Completion([](void*) { throw std::runtime_error("on the device"); }, nullptr);
  };
  CHECK_THROWS_AS(failing.run_all(in_turn, fail, nothing_more), fanout::ReplicaError);
}
