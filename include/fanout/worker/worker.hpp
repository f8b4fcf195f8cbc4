// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/floating_point_modes.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/sync/spin.hpp>
#include <fanout/waiting/arrival_predictor.hpp>
#include <fanout/waiting/wait_policy.hpp>
#include <fanout/worker/handoff_slot.hpp>
#include <fanout/worker/system_threads.hpp>
#include <fanout/worker/task.hpp>
#include <fanout/worker/task_queue.hpp>

namespace fanout { inline namespace v0 {

namespace backend {
class Worker;
}

namespace detail {

/// The worker whose thread this is; null on the threads of users.
[[gnu::visibility("default")]] inline thread_local constinit const backend::Worker* this_worker = nullptr;

}  // namespace detail

namespace backend {

/// Drives one device: its handoff slot, its queue, and the thread that runs the work of both. The first task starts the
/// thread. It blocks all signals but those of its own faults, runs on the device's cores, and is never joined. A child
/// of fork starts its own. A worker without cores has no thread: its callers take back the queued tasks and run them.
/// If a task forks and returns in the child, the child exits with EXIT_FAILURE.
class Worker {
 public:
  /// `bound` workers own their cores and wait by their wait rules. Others share their cores and sleep at once.
  Worker(DeviceId id, std::vector<int> cores, bool bound) : id_(id), cores_(std::move(cores)), bound_(bound) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const DeviceId& id() const noexcept { return id_; }
  const std::vector<int>& cores() const noexcept { return cores_; }
  bool has_thread() const noexcept { return !cores_.empty(); }
  bool bound() const noexcept { return bound_; }
  /// Moves the calling thread, which runs shards of this device, to the core of this device if it is on the only core
  /// of the other one, whose thread could not run.
  // 64 calls of two bodies of 100 us then take 8.7 ms at most, where they took 17.6; 6.5 without a move.
  void take_caller_from(const Worker& other) const noexcept {
    if (!other.bound_ || other.cores_.size() != 1 || &other == this) return;
    if (other.cores_[0] == detail::SystemThreads::current_core()) detail::SystemThreads::move_to(cores_);
  }

  /// The device's mutex and slot for a request. The worker's thread holds it for each task. A caller may lock it and
  /// run the device's work itself.
  detail::HandoffSlot& handoff() noexcept { return handoff_; }

  /// The number of ticks that a thread spins for this device before it sleeps. `shard_takes` is the expected time of a
  /// shard in ticks.
  std::int64_t spin_ticks(const WaitRules& rules, std::int64_t shard_takes = 0) const noexcept {
    if (!bound_ || rules.spin == 0) return 0;
    if (rules.spin == WaitRules::forever) return detail::Ticks::forever;
    const std::int64_t least = detail::Ticks::in(rules.spin);
    if (shard_takes / 8 <= least) return least;
    const std::int64_t most = detail::Ticks::in(rules.longest_spin);
    return most <= least ? least : shard_takes / 8 <= most ? shard_takes / 8 : most;
  }

  /// True if the thread would have to be woken or started.
  bool is_asleep() const noexcept { return asleep_.load(detail::MemoryOrder::relaxed) != awake; }

  /// The wait rules of the last call on this worker, with times in steps of 64 ns.
  WaitRules rules() const noexcept { return detail::RulesWord::rules(rules_.load(detail::MemoryOrder::relaxed)); }

  /// Locks the device and hands it to the thread with a request, if the device is free and nothing is queued.
  /// Otherwise, or if there is no thread, returns 0. The thread calls `run(body, shard)`, which is expected to take
  /// `takes` ticks, under these floating-point modes. Afterwards it waits by a copy of these rules.
  detail::HandoffSlot::Ticket post(
      detail::HandoffSlot::Run run, const void* body, std::size_t shard, const WaitRules& rules, std::int64_t takes = 0,
      const detail::FloatingPointModes& modes = detail::FloatingPointModes::current()) noexcept {
    if (epoch_.load(detail::MemoryOrder::acquire) != detail::fork_epoch()) revive();
    if (!started_.load(detail::MemoryOrder::acquire) && !start()) return 0;
    if (!queue_.empty()) return 0;
    const std::uint32_t state = asleep_.load(detail::MemoryOrder::relaxed);
    const bool sleeps = state == asleep || state == asleep_for_good;
    const detail::HandoffSlot::Ticket ticket = handoff_.post({.run = run,
                                                              .body = body,
                                                              .shard = shard,
                                                              .rules = &rules,
                                                              .takes = takes,
                                                              .woken_at = sleeps ? detail::Ticks::now() : 0,
                                                              .modes = modes});
    if ((ticket & detail::HandoffSlot::revocable) != 0) {
      wait_by(rules);  // the thread may wake too late to see the request
      wake();
    }
    return ticket;
  }

  /// Queues a task. If there is no thread, and none can be started, the task stays queued until it is taken back.
  void post(detail::Task& task) noexcept {
    if (epoch_.load(detail::MemoryOrder::acquire) != detail::fork_epoch()) revive();
    queue_.push(task);
    if (started_.load(detail::MemoryOrder::acquire) || start()) wake();
  }

  /// Takes a queued task back. Returns false if it has been started.
  bool take_back(detail::Task& task) noexcept { return queue_.remove(task); }

  /// Defers a task that the caller means to take back and run inline. Does not wake the thread. If the caller has not
  /// taken it back within 20 ms, the thread runs it if the device is free: perhaps what the caller runs waits for this
  /// task. Returns false if the thread sleeps for good or does not exist, or if another task is deferred.
  bool defer(detail::Task& task) noexcept {
    if (epoch_.load(detail::MemoryOrder::acquire) != detail::fork_epoch() || !looks_around()) return false;
    if (is_deferred()) return false;
    deferred_was_seen_.store(false, detail::MemoryOrder::relaxed);
    detail::Task* none = nullptr;
    if (!deferred_.compare_exchange_strong(none, &task, detail::MemoryOrder::seq_cst)) return false;
    // The thread stores that it sleeps for good, and then checks for a deferred task. So one of the two notices.
    return looks_around() || !take_deferred(task);
  }

  /// Takes a deferred task back. Returns false if it has been started.
  bool take_deferred(detail::Task& task) noexcept {
    detail::Task* expected = &task;
    return deferred_.load(detail::MemoryOrder::relaxed) == expected &&
           deferred_.compare_exchange_strong(expected, nullptr);
  }

  /// Notes a call that runs the shard of this sleeping worker inline, for so many nanoseconds from now on. The
  /// predictor learns from it. If calls are regular, every eighth note wakes the thread, so that it waits for the next
  /// call.
  void note_deferred(std::int64_t nanoseconds) noexcept {
    const detail::Clock::Time now = detail::Clock::now();
    const detail::Clock::Time idle_since = idle_since_.load(detail::MemoryOrder::relaxed);
    if (idle_since != 0) arrivals_.note(idle_since, now);
    idle_since_.store(now + nanoseconds, detail::MemoryOrder::relaxed);
    if (!arrivals_.are_regular()) return;
    // Not every time: waking the thread in vain costs more than it saves.
    if (times_left_.fetch_add(1, detail::MemoryOrder::relaxed) % 8 == 0) wake();
  }

 private:
  static constexpr std::uint32_t awake = 0;
  static constexpr std::uint32_t asleep = 1;  // and checks for deferred tasks from time to time
  static constexpr std::uint32_t asleep_for_good = 2;
  static constexpr std::uint32_t not_started = 3;

  /// How often a thread checks for a deferred task, and how soon again after it saw one: a call with small shards has
  /// taken it back by then. In nanoseconds, together 20 ms.
  static constexpr std::int64_t between_looks = 19'000'000;
  static constexpr std::int64_t look_again = 1'000'000;
  /// The idle time after which a thread sleeps for good.
  static constexpr std::int64_t looks_for = 10'000'000'000;

  FANOUT_INLINE static void* enter(void* worker);

  FANOUT_INLINE void loop() noexcept;

  /// True if the thread will find a deferred task.
  bool looks_around() const noexcept { return asleep_.load(detail::MemoryOrder::seq_cst) < asleep_for_good; }

  void wait_by(const WaitRules& rules) noexcept {
    const std::uint64_t word = detail::RulesWord::of(rules);
    // Not written needlessly: callers read other members in this cache line.
    if (word != rules_.load(detail::MemoryOrder::relaxed)) rules_.store(word, detail::MemoryOrder::relaxed);
  }

  bool has_work() const noexcept { return handoff_.has_request() || !queue_.empty(); }

  /// Spins for so many ticks until work comes, and checks for deferred tasks from time to time. Returns false if
  /// neither came.
  FANOUT_INLINE bool look_for_work(std::int64_t ticks) noexcept;

  FANOUT_INLINE void wait_for_work() noexcept;

  bool is_deferred() const noexcept { return deferred_.load(detail::MemoryOrder::relaxed) != nullptr; }

  /// Between two tasks, since there may always be a next one.
  FANOUT_INLINE void look_while_busy() noexcept;

  /// Runs a deferred task if the check before saw one, too: then its caller waits for it. Checks at intervals. Returns
  /// true if it ran a task.
  FANOUT_INLINE bool look_for_deferred(detail::Clock::Time now) noexcept;

  /// Returns false if the device is not free, or the task was taken back.
  FANOUT_INLINE bool run_deferred() noexcept;

  /// Sleeps until `until` at most. If `looks`, the thread checks for deferred tasks after that.
  FANOUT_INLINE void sleep(detail::Clock::Time until, bool looks) noexcept;

  /// The poster writes the work and then reads `asleep_`. The thread writes `asleep_` and then reads the work. So one
  /// of the two notices.
  void wake() noexcept {
    std::uint32_t seen = asleep_.fetch_add(0, detail::MemoryOrder::seq_cst);
    if (seen != asleep && seen != asleep_for_good) return;
    if (asleep_.compare_exchange_strong(seen, awake)) detail::unpark_all(asleep_);
  }

  /// Returns false if there is no thread and none can be started.
  [[gnu::cold]] FANOUT_INLINE bool start() noexcept;

  /// In the child of a fork: the queued tasks and the thread stayed in the parent.
  [[gnu::cold]] FANOUT_INLINE void revive() noexcept;

  const DeviceId id_;
  const std::string thread_name_ = "fanout " + to_string(id_);
  const std::vector<int> cores_;
  const bool bound_;
  detail::ForkSafeMutex start_mutex_;
  detail::HandoffSlot handoff_;
  alignas(detail::cache_line) detail::TaskQueue queue_;
  // What callers read, in one cache line. It is written when the thread falls asleep or wakes, and by calls that defer
  // a task.
  alignas(detail::cache_line) detail::Atomic<bool> started_{false};
  detail::Atomic<std::uint32_t> epoch_{detail::fork_epoch()};
  detail::Atomic<std::uint32_t> asleep_{not_started};
  detail::Atomic<std::uint32_t> times_left_{0};
  detail::Atomic<detail::Task*> deferred_{nullptr};
  detail::Atomic<detail::Clock::Time> idle_since_{0};
  detail::Atomic<std::uint64_t> rules_{detail::RulesWord::of(Adaptive::rules)};  // the thread's
  detail::Atomic<bool> deferred_was_seen_{false};                                // at the thread's last check
  alignas(detail::cache_line) detail::ArrivalPredictor arrivals_;
  std::int64_t shard_takes_ = 0;       // the expected time of the last one; this and what follows belongs to the thread
  detail::Clock::Time next_look_ = 0;  // for deferred tasks
};

}  // namespace backend

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/worker/worker.ipp>
#endif
