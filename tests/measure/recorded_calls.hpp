// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include <fanout/measure/call_clock.hpp>
#include <fanout/measure/call_observer.hpp>
#include <fanout/plan/call_times.hpp>

namespace fanout_test {

/// A call that has ended, with copies of what CallTimes only points to.
struct RecordedCall {
  fanout::CallTimes times;
  fanout::Plan plan;
  std::vector<fanout::ShardTimes> shards;
  std::vector<fanout::DeviceId> devices;
  std::string model;

  explicit RecordedCall(const fanout::CallTimes& call)
      : times(call),
        plan(*call.plan),
        shards(call.shards, call.shards + call.plan->size()),
        devices(call.devices, call.devices + call.device_count),
        model(call.model) {}
};

/// Observes all calls of the process while it lives.
class RecordedCalls final : public fanout::detail::CallObserver {
 public:
  RecordedCalls() : CallObserver(&fanout::detail::make_call_clock) {
    REQUIRE(fanout::detail::process_observer.set(*this));
  }
  ~RecordedCalls() { fanout::detail::process_observer.unset(*this); }

  void ended(const fanout::CallTimes& call) noexcept override {
    const std::lock_guard lock(mutex_);
    calls_.emplace_back(call);
  }

  std::vector<RecordedCall> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::size_t size() const { return calls().size(); }
  RecordedCall last() const {
    REQUIRE(size() != 0);
    return calls().back();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<RecordedCall> calls_;
};

}  // namespace fanout_test
