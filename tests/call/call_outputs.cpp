// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

#include <fanout/call/call_outputs.hpp>

namespace {

using fanout::Plan;
using fanout::backend::Completion;
using fanout::detail::ShardSlot;
using Outputs = fanout::detail::CallOutputs<int>;

const fanout::DeviceId two_hosts[] = {{.kind = "toy", .index = 7}, {.kind = "host", .index = 0}};
const Plan two_and_one{{.rows = {0, 2}, .device = 1}, {.rows = {2, 3}, .device = 0}};

const fanout::detail::CallSettings default_settings;

/// Runs the shards one after the other, as a call does.
template <class Run>
void run_all(Outputs& outputs, const Run& run) {
  const bool is_plain = outputs.begin();
  for (std::size_t i = outputs.plan().size(); i > 0; --i) {
    fanout::detail::ShardCell<int>& cell = outputs.cells()[i - 1];
    if (is_plain) cell.make();
    try {
      run(i - 1, cell.slot());
      outputs.note_success(cell.slot());
    } catch (...) {
      outputs.note_exception(cell.slot());
    }
    if (!is_plain) outputs.note_end(i - 1, cell.slot());
  }
  outputs.all_ended();
}

}  // namespace

TEST_CASE("a call borrows its plan, and puts together what its shards returned in row order") {
  Outputs outputs(two_and_one, default_settings, {}, two_hosts, false);
  CHECK(&outputs.plan() == &two_and_one);
  run_all(outputs, [&](std::size_t i, ShardSlot<int>& slot) {
    slot.fill([&] { return static_cast<int>(10 * i + outputs.state().plan[i].rows.size()); });
  });
  CHECK(outputs[1].value() == 11);
  const auto all = outputs.gather();
  CHECK(std::vector<int>(all.begin(), all.end()) == std::vector{2, 11});
}

TEST_CASE("the plan names a shard's device by its position in the set") {
  Outputs outputs(two_and_one, default_settings, {}, two_hosts, false);
  const auto fail = [](std::size_t i, ShardSlot<int>& slot) {
    slot.failed_in_forward = true;
    if (i == 1) throw std::runtime_error("in forward");
  };
  try {
    run_all(outputs, fail);
    FAIL("nothing was thrown");
  } catch (const fanout::ReplicaError& error) {
    REQUIRE(error.failures().size() == 1);
    CHECK(error.failures()[0].shard == 1);
    CHECK(error.failures()[0].device == two_hosts[0]);
  }
}

TEST_CASE("an exception from before forward takes precedence over those that forward throws") {
  const auto fail = [](std::size_t i, ShardSlot<int>& slot) {
    if (i == 1) throw fanout::DeviceMismatch("before");
    slot.failed_in_forward = true;
    throw std::runtime_error("in forward");
  };
  Outputs outputs(two_and_one, default_settings, {}, two_hosts, false);
  CHECK_THROWS_AS(run_all(outputs, fail), fanout::DeviceMismatch);
}

TEST_CASE("a call waits for its devices' pending work, whose failure is the shard's failure") {
  int waits = 0;
  const auto go_on = [&waits](std::size_t, ShardSlot<int>& slot) {
    slot.fill([] { return 1; });
    slot.completion = Completion([](void* counter) { ++*static_cast<int*>(counter); }, &waits);
  };
  Outputs outputs(two_and_one, default_settings, {}, two_hosts, false);
  run_all(outputs, go_on);
  CHECK(waits == 2);

  Outputs failing(two_and_one, default_settings, {}, two_hosts, false);
  const auto fail = [](std::size_t i, ShardSlot<int>& slot) {
    slot.fill([] { return 1; });
    if (i == 0) slot.completion = Completion([](void*) { throw std::runtime_error("on the device"); }, nullptr);
  };
  CHECK_THROWS_AS(run_all(failing, fail), fanout::ReplicaError);
}
