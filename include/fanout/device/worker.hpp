// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/device/task.hpp>
#include <fanout/device/task_queue.hpp>
#include <fanout/device/thread.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/right.hpp>

namespace fanout::inline v0 {

/// Drives one device: its execution right, its queue, and the thread that runs what is queued. The thread is started by
/// the first task, blocks all signals but those of its own faults, runs on the device's cores and is never joined; a
/// child of fork starts its own. A worker that is made without cores never has one: what is queued runs where it is
/// taken back, so that its device runs in the callers' threads. If a task that the thread runs forks and returns in the
/// child, the child ends there with EXIT_FAILURE.
class Worker {
 public:
  /// `bound` workers own their cores, so they spin a little before they sleep; others share theirs and do not.
  Worker(DeviceId id, std::vector<int> cores, bool bound) : id_(id), cores_(std::move(cores)), bound_(bound) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const DeviceId& id() const noexcept { return id_; }
  const std::vector<int>& cores() const noexcept { return cores_; }
  bool has_thread() const noexcept { return !cores_.empty(); }
  bool bound() const noexcept { return bound_; }

  /// The right to run on the device. The worker's thread takes it for each task; a caller may take it and run there
  /// itself.
  Right& right() noexcept { return right_; }

  /// How many turns a thread that waits for this device spins before it sleeps: about 25 us, below what a wake costs.
  std::uint32_t spins() const noexcept { return bound_ ? 2000 : 0; }

  /// Queues a task. If there is no thread for it, or none can be started (the system's limit), it stays queued until it
  /// is taken back.
  void post(Task& task) noexcept {
    if (epoch_.load(MemoryOrder::acquire) != fork_epoch()) revive();
    queue_.push(task);
    if (has_thread() && !started_.load(MemoryOrder::acquire)) start();
    // The queue is written before `asleep_` is read, and the thread does it the other way round: one of them notices.
    if (asleep_.load(MemoryOrder::seq_cst) == 1 && asleep_.exchange(0) == 1) unpark_all(asleep_);
  }

  /// Takes a posted task back. False if it has been started.
  bool take_back(Task& task) noexcept { return queue_.remove(task); }

 private:
  static void* enter(void* worker) {
    static_cast<Worker*>(worker)->loop();
    return nullptr;
  }

  void loop() noexcept {
    const std::uint32_t epoch = fork_epoch();
    while (epoch == fork_epoch()) {
      wait_for_post();
      // Not before the device is ours is a task taken, since whoever posted it may take it back until then.
      const HeldRight device(right_);
      if (Task* task = queue_.pop()) task->run();
    }
    // The task forked, and this is the child: the thread that waits for the task stayed in the parent, so that nobody
    // can go on from here. Ending the thread alone would leave a process that others wait for in vain.
    std::_Exit(EXIT_FAILURE);
  }

  void wait_for_post() noexcept {
    for (std::uint32_t i = 0; i < spins(); ++i) {
      if (!queue_.empty()) return;
      pause();
    }
    for (;;) {
      asleep_.store(1, MemoryOrder::seq_cst);
      if (!queue_.empty()) break;
      park(asleep_, 1);
      if (!queue_.empty()) break;
    }
    asleep_.store(0, MemoryOrder::relaxed);
  }

  void start() noexcept {
    const HeldRight starting(start_right_);
    if (started_.load(MemoryOrder::relaxed)) return;
    const bool started = detail::start_thread(cores_, &Worker::enter, this, "fanout " + to_string(id_));
    started_.store(started, MemoryOrder::release);
  }

  /// In the child of a fork: what was queued and who ran it stayed in the parent.
  void revive() noexcept {
    const HeldRight reviving(start_right_);
    if (epoch_.load(MemoryOrder::relaxed) == fork_epoch()) return;
    queue_.forget();
    started_.store(false, MemoryOrder::relaxed);
    asleep_.store(0, MemoryOrder::relaxed);
    epoch_.store(fork_epoch(), MemoryOrder::release);
  }

  const DeviceId id_;
  const std::vector<int> cores_;
  const bool bound_;
  Atomic<bool> started_{false};
  Atomic<std::uint32_t> epoch_{fork_epoch()};
  Right start_right_;
  alignas(64) TaskQueue queue_;
  Right right_;
  alignas(64) Atomic<std::uint32_t> asleep_{0};
};

}  // namespace fanout::inline v0
