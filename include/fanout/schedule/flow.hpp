// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device_clock.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/dispatch/shard_runner.hpp>
#include <fanout/dispatch/shard_tasks.hpp>
#include <fanout/memory/pool_allocator.hpp>
#include <fanout/schedule/time_in_calls.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/sync/virtual_time.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Told of a flow that no thread waits for.
class FlowWatcher {
 public:
  FlowWatcher() noexcept = default;
  FlowWatcher(const FlowWatcher&) = delete;
  FlowWatcher& operator=(const FlowWatcher&) = delete;
  /// A device got a step. A thread may take it back.
  virtual void step_was_posted() noexcept = 0;
  /// All steps have ended. The models of the stages may go from now on.
  virtual void flow_has_ended() noexcept = 0;

 protected:
  ~FlowWatcher() = default;
};

/// Steps that wait for each other. The thread of its device runs each as soon as the steps before it have ended. A
/// thread that ends a step goes on with the next one of its device, if that need not wait. No step waits while it holds
/// a thread. A thread that waits for the flow runs what no device has started. So flows end, also inside of each other
/// and on the same devices.
class Flow {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  /// `steps` is their number at most. Borrows their devices.
  explicit Flow(std::size_t steps) : steps_(steps), tasks_(steps) {}
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  /// Lets this device run a step. A step that no device runs is none.
  void add(std::size_t step, const DeviceEntry& device) noexcept {
    ++added_;
    tasks_[step].worker = device.worker;
    tasks_[step].shard = step;
    steps_[step].device = &device;
  }
  /// The thread that ends `step` goes on with `next`, of the same device, if that waits for nothing else.
  void goes_on(std::size_t step, std::size_t next) noexcept { steps_[step].then[0] = wait(next); }
  /// `later` waits for `step`, which may have two such steps.
  void comes_before(std::size_t step, std::size_t later) noexcept {
    steps_[step].then[steps_[step].then[1] == none ? 1 : 2] = wait(later);
  }

  /// Runs all steps by `body(step)`, which must not throw, and returns when all have ended. Begins with step 0 on this
  /// thread. Throws Error in a process that was forked meanwhile, since steps on other threads stayed in the parent.
  template <class Body>
  void run(const Body& body) {
    const ShardRunner runner(body);
    run_all(runner);
  }

  /// Counts the time of the flow. Call this before it runs.
  void timed_by(TimeInCalls& time) noexcept { time_ = &time; }
  /// Tells the watcher of a flow that start() starts. Call this before other threads know the flow.
  void watched_by(FlowWatcher& watcher) noexcept { watcher_ = &watcher; }
  /// Posts the first step, and returns. A thread must call wait(). The runner and the watcher must live until then.
  FANOUT_INLINE void start(const ShardRunner& runner);
  /// Takes back a posted step that no device has started, for a thread that runs it. Returns null if there is none. Any
  /// thread may call this until flow_has_ended() returns.
  FANOUT_INLINE ShardTask* take_back() noexcept;
  /// Runs the steps that no device has started until all have ended. Returns false if the process was forked.
  FANOUT_INLINE bool wait() noexcept;
  /// True if the process was forked after the flow was made.
  bool forked() const noexcept { return epoch_ != fork_epoch(); }

 private:
  struct Step {
    Atomic<std::uint32_t> waits{0};  // for so many steps
    std::size_t then[3] = {none, none, none};
    const DeviceEntry* device = nullptr;
    VirtualTime ready;  // the end of what it waits for, by clocks of the devices' own
    Atomic<bool> posted{false};
  };

  /// Runs a step, and those that this thread goes on with.
  struct FromStep {
    Flow* flow;
    FANOUT_INLINE void operator()(std::size_t step) const noexcept;
  };

  std::size_t wait(std::size_t step) noexcept {
    steps_[step].waits.fetch_add(1, MemoryOrder::relaxed);
    return step;
  }
  /// True if `step` may begin now: it waits for nothing else.
  bool arrive(std::size_t step) noexcept { return steps_[step].waits.fetch_sub(1, MemoryOrder::acq_rel) == 1; }

  /// Runs the body of a step. Returns when it has ended, by clocks of the devices' own.
  FANOUT_INLINE Clock::Time run_body(std::size_t step) noexcept;

  FANOUT_INLINE void run_all(const ShardRunner& runner);
  FANOUT_INLINE void begin(const ShardRunner& runner);
  FANOUT_INLINE void end() noexcept;
  FANOUT_INLINE void post(std::size_t step) noexcept;
  /// Wakes the thread that waits for the flow.
  FANOUT_INLINE void tell() noexcept;

  PoolVector<Step> steps_;       // made once, since its elements cannot be moved
  PoolVector<ShardTask> tasks_;  // those that devices got
  const FromStep from_step_{this};
  const ShardRunner tasks_runner_{from_step_};
  const ShardRunner* body_ = nullptr;
  std::size_t added_ = 0;  // how many steps there are
  const std::uint32_t epoch_ = fork_epoch();
  VirtualTime end_;  // of the steps so far
  TimeInCalls* time_ = nullptr;
  FlowWatcher* watcher_ = nullptr;
  ForkSafeMutex taking_;             // of a flow with a watcher
  std::vector<DeviceClock> clocks_;  // copies of the devices' own: the devices may go before the flow
  Atomic<std::size_t> left_{0};      // steps that have not ended
  Atomic<bool> has_ended_{false};
  Atomic<std::uint32_t> told_{0};  // what the thread that waits for the flow sleeps on
  Atomic<bool> sleeps_{false};     // it sleeps, or is about to
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/schedule/flow.ipp>
#endif
