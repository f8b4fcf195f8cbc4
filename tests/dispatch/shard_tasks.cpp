// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/dispatch/shard_tasks.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <fanout/device/device_table.hpp>
#include <fanout/device/host_device.hpp>

#include "support/asleep.hpp"

using fanout::detail::ShardTask;
using fanout::detail::ShardTasks;

TEST_CASE("taking a shard back waits until all shards are posted") {
  const auto devices = fanout::host_devices(2);
  const fanout::detail::DeviceTable table(devices);
  ShardTasks tasks(2);
  for (std::size_t i = 0; i < 2; ++i) tasks.place(i, {.rows = {i, i + 1}, .device = i}, table);
  std::atomic<bool> asks{false};
  std::atomic<bool> answered{false};
  std::thread other([&] {
    asks = true;
    CHECK(tasks.take_back() == nullptr);  // none was given away
    answered = true;
  });
  fanout_test::until(asks);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(answered);
  tasks.all_are_posted();
  other.join();
  CHECK(answered);
}
