// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <vector>

#include <fanout/call/async_calls.hpp>
#include <fanout/call/pending_calls.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/worker/registry.hpp>

using fanout::Plan;
using fanout::detail::AsyncCall;
using fanout::detail::AsyncCalls;
using fanout::detail::CallOrder;

namespace {

std::vector<int> ran;

/// A call whose shards note their numbers. Without device threads they run in the thread that helps.
struct Call final : AsyncCall {
  int name;
  explicit Call(int n) : AsyncCall(2, fanout::detail::Clock::never), name(n) {}
  void run_shard(std::size_t shard) noexcept override { ran.push_back(10 * name + static_cast<int>(shard)); }
  void tell_late() noexcept override {}
};

const Plan two_shards{{.rows = {0, 1}, .device = 0}, {.rows = {1, 2}, .device = 0}};

fanout::DeviceSet<fanout::HostDevice> idle_device() {
  return fanout::DeviceSet(
      std::vector{fanout::HostDevice(fanout::backend::registry().worker({.kind = "idle", .index = 0}, {}, false))});
}

}  // namespace

TEST_CASE("waiting for a call runs it, and first the earlier calls if it is ordered") {
  const auto devices = idle_device();
  fanout::detail::SharedMutex mutex;
  auto& calls = *new AsyncCalls(1);
  for (const bool in_order : {false, true}) {
    ran.clear();
    Call first(1);
    Call second(2);
    Call third(3);
    for (Call* call : {&first, &second, &third}) {
      mutex.lock_shared();
      call->keep_in(calls);
      calls.post(*call, two_shards, devices, mutex, in_order && call != &second);
      CHECK_FALSE(call->is_over());
    }
    CHECK(calls.has_ordered() == in_order);
    CHECK(calls.wait(third));
    CHECK(third.is_over());
    CHECK(ran == (in_order ? std::vector{10, 11, 30, 31} : std::vector{30, 31}));
    calls.help();
    CHECK(ran.size() == 6);
    CHECK_FALSE(calls.has_ordered());
    CHECK(calls.wait(first));
    CHECK(calls.wait(second));
    mutex.lock();  // they have left it
    mutex.unlock();
    for (int i = 0; i < 3; ++i) calls.release();
  }
  calls.release();
}

TEST_CASE("a model without pending calls keeps no state, and its destructor waits for all calls") {
  const auto devices = idle_device();
  fanout::detail::SharedMutex mutex;
  Call call(4);
  ran.clear();
  {
    const int original = 0;
    fanout::detail::PendingCalls<fanout::detail::AsyncCalls> pending(&original, 1);
    pending.help();
    pending.wait_for_earlier(CallOrder::changes);
    CHECK_FALSE(pending.is_in_order(CallOrder::any));
    CHECK_FALSE(pending.is_in_order(CallOrder::after_changes));
    CHECK(pending.is_in_order(CallOrder::changes));
    {
      const fanout::detail::CallScope scope{.original = &original};
      const fanout::detail::EnteredScope entered(scope);
      CHECK_FALSE(pending.is_in_order(CallOrder::changes));
    }
    mutex.lock_shared();
    call.keep_in(pending.calls());
    pending.calls().post(call, two_shards, devices, mutex, true);
    CHECK(pending.is_in_order(CallOrder::after_changes));
    pending.wait_for_earlier(CallOrder::any);
    CHECK(ran.empty());
  }
  CHECK(ran == std::vector{40, 41});
  CHECK(call.calls()->wait(call));
  call.calls()->release();
}
