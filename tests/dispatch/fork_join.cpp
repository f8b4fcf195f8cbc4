// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/dispatch/fork_join.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <thread>
#include <vector>

#include <fanout/device/host_device.hpp>
#include <fanout/plan/even_split.hpp>

#include "support/asleep.hpp"
#include "support/fork.hpp"
#include "support/meeting.hpp"
#include "support/skip.hpp"

using fanout::DeviceSet;
using fanout::EvenSplit;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::Plan;
using fanout::detail::run_shards;
using fanout_test::Meeting;

namespace {

using Hosts = DeviceSet<HostDevice>;

/// One shard for each device.
Plan one_each(const Hosts& devices) { return EvenSplit{}(0, devices.size()); }

/// The devices of `from` at these positions.
Hosts pick(const Hosts& from, std::initializer_list<std::size_t> positions) {
  std::vector<HostDevice> picked;
  for (const std::size_t i : positions) picked.push_back(from[i]);
  return Hosts(std::move(picked));
}

}  // namespace

TEST_CASE("every shard runs exactly once, whatever the plan, and all have ended when run_shards returns") {
  for (const int count : {1, 2, 3, 7}) {
    const Hosts devices = host_devices(count);
    std::vector<Plan> plans;
    for (std::size_t rows = 0; rows < 12; ++rows) plans.push_back(EvenSplit{}(rows, devices.size()));
    Plan several;  // more shards than devices, in any order of devices
    for (std::size_t i = 0; i < 20; ++i) several.add({.rows = {i, i + 1}, .device = (i * 5 + 2) % devices.size()});
    plans.push_back(several);
    plans.push_back(Plan{{.rows = {0, 1}, .device = devices.size() - 1}});
    for (const Plan& plan : plans) {
      CAPTURE(count);
      CAPTURE(plan.size());
      std::vector<int> runs(plan.size(), 0);  // plain: run_shards itself must order these
      run_shards(plan, devices, [&runs](std::size_t i) noexcept { ++runs[i]; });
      CHECK(runs == std::vector<int>(plan.size(), 1));
    }
  }
}

TEST_CASE("a plan without shards runs nothing") {
  int runs = 0;
  run_shards(Plan{}, host_devices(2), [&runs](std::size_t) noexcept { ++runs; });
  CHECK(runs == 0);
}

TEST_CASE("the main device's shard runs on the calling thread if the device is free") {
  const Hosts devices = host_devices(3);
  for (int round = 0; round < 50; ++round) {
    devices[0].worker().handoff().lock();  // waits for what an earlier test left
    devices[0].worker().handoff().unlock();
    std::array<std::thread::id, 3> threads;
    bool had_right = false;
    run_shards(one_each(devices), devices, [&](std::size_t i) noexcept {
      threads[i] = std::this_thread::get_id();
      if (i == 0) had_right = !devices[0].worker().handoff().try_lock();
    });
    CHECK(threads[0] == std::this_thread::get_id());
    CHECK(had_right);
  }
  CHECK(devices[0].worker().handoff().try_lock());
  devices[0].worker().handoff().unlock();
}

TEST_CASE("all devices run at the same time") {
  for (const int count : {2, 3, 7}) {
    const Hosts devices = host_devices(count);
    for (int round = 0; round < 30; ++round) {
      Meeting rendezvous(count);  // hangs unless each shard has a thread
      run_shards(one_each(devices), devices, [&rendezvous](std::size_t) noexcept { rendezvous.come(); });
    }
  }
  CHECK(true);
}

TEST_CASE("a shard that its device does not start is taken back by the caller") {
  const Hosts devices = host_devices(2);
  for (const std::size_t held : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    CAPTURE(held);
    for (std::size_t i = 0; i < 2; ++i) {
      if (held == 2 || held == i) devices[i].worker().handoff().lock();
    }
    std::array<std::thread::id, 2> threads;
    run_shards(one_each(devices), devices,
               [&threads](std::size_t i) noexcept { threads[i] = std::this_thread::get_id(); });
    for (std::size_t i = 0; i < 2; ++i) {
      if (held != 2 && held != i) continue;
      CHECK(threads[i] == std::this_thread::get_id());
      devices[i].worker().handoff().unlock();
    }
  }
}

TEST_CASE("a shard that a device has started is waited for, asleep") {
  const Hosts devices = host_devices(2);
  devices[0].worker().handoff().lock();
  devices[0].worker().handoff().unlock();
  const std::atomic<int> caller{fanout_test::this_thread()};
  std::atomic<bool> started{false};
  bool ended = false;
  run_shards(one_each(devices), devices, [&](std::size_t i) noexcept {
    if (i == 0) {
      fanout_test::until(started);
    } else {
      started = true;
      fanout_test::until_asleep(caller);
      ended = true;
    }
  });
  CHECK(ended);
}

namespace {

struct Flag {
  fanout::detail::Atomic<bool> set{false};
};

/// A body with a flag for the end of each shard.
struct Flagged {
  std::array<Flag, 3>& flags;
  std::array<int, 3>& runs;
  void operator()(std::size_t i) const noexcept {
    if (!flags[i].set.load()) ++runs[i];  // set by the thread afterwards
  }
  fanout::detail::DoneFlags done_flags() const noexcept { return {flags[0].set, sizeof(Flag)}; }
};

}  // namespace

TEST_CASE("if a body has a flag for each shard, the next call may come before the thread completes the request") {
  for (const bool spins : {false, true}) {
    fanout::HostDeviceOptions options{.count = 3};
    if (spins) options.wait = fanout::Spin{};
    const Hosts devices = host_devices(options);
    std::array<int, 3> runs{};  // plain
    for (int call = 1; call <= 2000; ++call) {
      std::array<Flag, 3> flags;
      run_shards(one_each(devices), devices, Flagged{flags, runs});
      REQUIRE(runs == std::array<int, 3>{call, call, call});
    }
  }
}

TEST_CASE("each shard runs once, both in calls that run inline and in later dispatched calls") {
  const Hosts devices = host_devices(3);
  fanout::detail::CallStatistics times;
  std::array<int, 3> runs{};  // plain
  std::array<std::thread::id, 3> threads;
  std::atomic<bool> slow{false};
  const auto body = [&](std::size_t i) noexcept {
    ++runs[i];
    threads[i] = std::this_thread::get_id();
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto call = [&] { run_shards(one_each(devices), devices, body, &times); };
  for (int i = 0; i < 3000; ++i) call();
  CHECK(runs == std::array<int, 3>{3000, 3000, 3000});
  CHECK(threads == std::array<std::thread::id, 3>{std::this_thread::get_id(), std::this_thread::get_id(),
                                                  std::this_thread::get_id()});
  slow = true;
  bool handed_out = false;
  for (int i = 0; i < 200 && !handed_out; ++i) {
    call();
    handed_out = threads[1] != threads[0] && threads[2] != threads[0];
  }
  CHECK(handed_out);
}

TEST_CASE("nested calls on the same and on overlapping sets end, with all shards of each level run") {
  const Hosts all = host_devices(3);
  const std::vector<Hosts> sets = {all, pick(all, {1, 0}), pick(all, {2, 1}), pick(all, {0}), pick(all, {1, 2, 0})};
  for (const Hosts& first : sets) {
    for (const Hosts& second : sets) {
      for (const Hosts& third : sets) {
        std::atomic<std::size_t> runs{0};
        run_shards(one_each(first), first, [&](std::size_t) noexcept {
          run_shards(one_each(second), second, [&](std::size_t) noexcept {
            run_shards(one_each(third), third, [&](std::size_t) noexcept { ++runs; });
          });
        });
        CHECK(runs == first.size() * second.size() * third.size());
      }
    }
  }
}

TEST_CASE("a child of fork has all devices, in threads of its own, while another thread of the parent was in a call") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  const Hosts devices = host_devices(2);
  const auto use = [&devices] {
    for (int i = 0; i < 10; ++i) {
      Meeting rendezvous(2);
      run_shards(one_each(devices), devices, [&rendezvous](std::size_t) noexcept { rendezvous.come(); });
    }
    return 0;
  };
  std::atomic<bool> end{false};
  std::atomic<int> inside{0};
  std::thread caller([&] {
    run_shards(one_each(devices), devices, [&](std::size_t) noexcept {
      ++inside;
      fanout_test::until(end);
    });
  });
  while (inside != 2) std::this_thread::yield();
  CHECK(fanout_test::in_child(use) == 0);
  CHECK(fanout_test::in_child([&use] { return fanout_test::in_child(use); }) == 0);
  end = true;
  caller.join();
  CHECK(use() == 0);

  // And at any moment of calls that come and go.
  end = false;
  std::atomic<long> calls{0};
  std::thread busy([&] {
    while (!end) {
      run_shards(one_each(devices), devices, [](std::size_t) noexcept {});
      ++calls;
    }
  });
  while (calls < 10) std::this_thread::yield();
  int failed = 0;
  for (int i = 0; i < 30; ++i) failed += fanout_test::in_child(use) != 0 ? 1 : 0;
  end = true;
  busy.join();
  CHECK(failed == 0);
}

TEST_CASE("after a fork inside a shard only the child's call fails") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  for (const bool spins : {false, true}) {
    CAPTURE(spins);
    fanout::HostDeviceOptions options{.count = 2};
    if (spins) options.wait = fanout::Spin{};
    const Hosts devices = host_devices(options);
    devices[0].worker().handoff().lock();  // so that shard 0 runs on this thread
    devices[0].worker().handoff().unlock();
    pid_t child = -1;
    std::atomic<bool> started{false};
    std::atomic<bool> end{false};
    std::array<int, 2> runs{};
    bool threw = false;
    try {
      run_shards(one_each(devices), devices, [&](std::size_t i) noexcept {
        ++runs[i];
        if (i == 0) {
          fanout_test::until(started);
          child = ::fork();
          if (child == 0) ::alarm(60);
          end = true;
        } else {
          started = true;
          fanout_test::until(end);
        }
      });
    } catch (const fanout::Error&) {
      threw = true;
    }
    if (child == 0) {
      fanout_test::child_ends_with([&] {
        if (!threw) return 1;
        Meeting rendezvous(2);  // the devices are free again
        run_shards(one_each(devices), devices, [&rendezvous](std::size_t) noexcept { rendezvous.come(); });
        return 0;
      });
    }
    CHECK_FALSE(threw);
    CHECK(runs == std::array<int, 2>{1, 1});
    CHECK(fanout_test::exit_code_of(child) == 0);
  }
}

TEST_CASE("a child that was forked on a device's own thread ends with a failure when its shard returns") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  const Hosts devices = host_devices(2);
  devices[0].worker().handoff().lock();
  devices[0].worker().handoff().unlock();
  for (const bool nested : {false, true}) {
    CAPTURE(nested);
    pid_t child = -1;
    std::atomic<bool> started{false};
    run_shards(one_each(devices), devices, [&](std::size_t i) noexcept {
      if (i == 0) {
        fanout_test::until(started);
      } else {
        started = true;
        child = ::fork();
        if (child == 0) {
          ::alarm(60);
          if (nested) {
            Meeting rendezvous(2);  // starts threads
            run_shards(one_each(devices), devices, [&rendezvous](std::size_t) noexcept { rendezvous.come(); });
          }
        }
      }
    });
    CHECK(fanout_test::exit_code_of(child) == EXIT_FAILURE);
  }
}
