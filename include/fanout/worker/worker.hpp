// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/right.hpp>
#include <fanout/sync/spin.hpp>
#include <fanout/waiting/arrivals.hpp>
#include <fanout/waiting/wait_policy.hpp>
#include <fanout/waiting/wake_cost.hpp>
#include <fanout/worker/mailbox.hpp>
#include <fanout/worker/task.hpp>
#include <fanout/worker/task_queue.hpp>
#include <fanout/worker/thread.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// Drives one device: its execution right with the request that may go along, its queue, and the thread that runs both.
/// The thread is started by the first task, blocks all signals but those of its own faults, runs on the device's cores
/// and is never joined; a child of fork starts its own. A worker that is made without cores never has one: what is
/// queued runs where it is taken back, so that its device runs in the callers' threads. If a task that the thread runs
/// forks and returns in the child, the child ends there with EXIT_FAILURE.
class Worker {
 public:
  /// `bound` workers own their cores, so they wait as they are told to; others share theirs and sleep at once.
  Worker(DeviceId id, std::vector<int> cores, bool bound) : id_(id), cores_(std::move(cores)), bound_(bound) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const DeviceId& id() const noexcept { return id_; }
  const std::vector<int>& cores() const noexcept { return cores_; }
  bool has_thread() const noexcept { return !cores_.empty(); }
  bool bound() const noexcept { return bound_; }

  /// The right to run on the device. The worker's thread has it for each task; a caller may take it and run there
  /// itself.
  detail::Mailbox& right() noexcept { return mailbox_; }

  /// How long one who waits for this device looks before it sleeps, where a shard takes so many ticks.
  std::int64_t spin_ticks(const WaitRules& rules, std::int64_t shard_takes = 0) const noexcept {
    if (!bound_ || rules.spin == 0) return 0;
    if (rules.spin == WaitRules::forever) return detail::Ticks::forever;
    const std::int64_t least = detail::Ticks::in(rules.spin);
    if (shard_takes / 8 <= least) return least;
    const std::int64_t most = detail::Ticks::in(rules.longest_spin);
    return most <= least ? least : shard_takes / 8 <= most ? shard_takes / 8 : most;
  }

  /// Whether the thread would have to be woken, or started.
  bool is_asleep() const noexcept { return asleep_.load(detail::MemoryOrder::relaxed) != awake; }

  /// How the thread waits, as the last call on it said; spans to 64 ns.
  WaitRules rules() const noexcept { return detail::RulesWord::rules(rules_.load(detail::MemoryOrder::relaxed)); }

  /// Takes the device, if it is free and nothing is queued, and hands it to the thread with a request. 0 if not, or if
  /// there is no thread. `run` is called with `body` and `shard`, which is expected to take so many ticks, on a thread
  /// that waits by these rules, which are copied, afterwards.
  detail::Mailbox::Ticket post(detail::Mailbox::Run run, const void* body, std::size_t shard, const WaitRules& rules,
                               std::int64_t takes = 0) noexcept {
    if (epoch_.load(detail::MemoryOrder::acquire) != detail::fork_epoch()) revive();
    if (!started_.load(detail::MemoryOrder::acquire) && !start()) return 0;
    if (!queue_.empty()) return 0;
    const std::uint32_t state = asleep_.load(detail::MemoryOrder::relaxed);
    const bool sleeps = state == asleep || state == asleep_for_good;
    const detail::Mailbox::Ticket ticket = mailbox_.post({.run = run,
                                                          .body = body,
                                                          .shard = shard,
                                                          .rules = &rules,
                                                          .takes = takes,
                                                          .woken_at = sleeps ? detail::Ticks::now() : 0});
    if ((ticket & detail::Mailbox::revocable) != 0) {
      wait_by(rules);  // the thread may wake too late to see the request
      wake();
    }
    return ticket;
  }

  /// Queues a task. If there is no thread for it, or none can be started (the system's limit), it stays queued until it
  /// is taken back.
  void post(detail::Task& task) noexcept {
    if (epoch_.load(detail::MemoryOrder::acquire) != detail::fork_epoch()) revive();
    queue_.push(task);
    if (started_.load(detail::MemoryOrder::acquire) || start()) wake();
  }

  /// Takes a queued task back. False if it has been started.
  bool take_back(detail::Task& task) noexcept { return queue_.remove(task); }

  /// Leaves a task with the worker that the caller means to run itself by and by, so takes back: a thread that sleeps
  /// is not woken for it. If the caller has not taken it back after 20 ms, since what it runs waits for this task, the
  /// thread runs it, unless the device is busy. False if the thread sleeps for good, is not there, or has been left
  /// another task.
  bool leave(detail::Task& task) noexcept {
    if (epoch_.load(detail::MemoryOrder::acquire) != detail::fork_epoch() || !looks_around()) return false;
    detail::Task* none = nullptr;
    if (!left_.compare_exchange_strong(none, &task, detail::MemoryOrder::seq_cst)) return false;
    left_was_seen_.store(false, detail::MemoryOrder::relaxed);
    // The thread says that it sleeps for good and then looks once more, so that one of the two notices.
    return looks_around() || !take_left(task);
  }

  /// Takes back a task that was left. False if it has been started.
  bool take_left(detail::Task& task) noexcept {
    detail::Task* expected = &task;
    return left_.load(detail::MemoryOrder::relaxed) == expected && left_.compare_exchange_strong(expected, nullptr);
  }

  /// Says that a call runs on its own thread, from now on for so long, what it would have handed to this one, which
  /// sleeps. From that the thread learns when calls come; where that is worth a wake, it is woken for it.
  void note_left(std::int64_t nanoseconds) noexcept {
    const detail::Clock::Time now = detail::Clock::now();
    const detail::Clock::Time idle_since = idle_since_.load(detail::MemoryOrder::relaxed);
    if (idle_since != 0) arrivals_.note(idle_since, now);
    idle_since_.store(now + nanoseconds, detail::MemoryOrder::relaxed);
    if (!arrivals_.are_regular()) return;
    // Not at each call: where the thread woke in vain again and again, that would cost more than it gains.
    if (times_left_.fetch_add(1, detail::MemoryOrder::relaxed) % 8 == 0) wake();
  }

 private:
  static constexpr std::uint32_t awake = 0;
  static constexpr std::uint32_t asleep = 1;  // and looks around from time to time
  static constexpr std::uint32_t asleep_for_good = 2;
  static constexpr std::uint32_t not_started = 3;

  /// How often a thread looks for what was left with it, and how soon again after it saw something: a call whose shards
  /// are small has taken that back by then. Together 20 ms, in nanoseconds.
  static constexpr std::int64_t between_looks = 19'000'000;
  static constexpr std::int64_t look_again = 1'000'000;
  /// After which idle time a thread that sleeps looks no more.
  static constexpr std::int64_t looks_for = 10'000'000'000;

  static void* enter(void* worker) {
    [[maybe_unused]] thread_local const detail::LibraryInUse this_code;
    static_cast<Worker*>(worker)->loop();
    return nullptr;
  }

  void loop() noexcept {
    const std::uint32_t epoch = detail::fork_epoch();
    detail::wake_in_time();
    asleep_.store(awake, detail::MemoryOrder::relaxed);
    mailbox_.attend();
    while (epoch == detail::fork_epoch()) {
      if (const detail::Mailbox::Request* request = mailbox_.begin()) {
        if (request->woken_at != 0) detail::wake_cost.note(detail::Ticks::now() - request->woken_at);
        shard_takes_ = request->takes;
        __builtin_prefetch(request, 1);  // so that the line is here to write when the answer is due
        detail::Atomic<bool>* ended = request->run(request->body, request->shard);
        if (epoch != detail::fork_epoch()) break;
        wait_by(*request->rules);  // which may be gone when the caller knows the end
        mailbox_.answer(ended);
        look_while_busy();
      } else if (!queue_.empty()) {
        // Not before the device is ours is a task taken, since whoever posted it may take it back until then.
        bool ours = false;
        detail::spin(spin_ticks(rules()), [&] { return mailbox_.has_request() || (ours = mailbox_.try_take()); });
        if (ours) {
          if (detail::Task* task = queue_.pop()) task->run();
          if (epoch != detail::fork_epoch()) break;
          mailbox_.give();
          look_while_busy();
        } else {
          mailbox_.await_change();
        }
      } else {
        wait_for_work();
      }
    }
    // The task forked, and this is the child: the thread that waits for the task stayed in the parent, so that nobody
    // can go on from here. Ending the thread alone would leave a process that others wait for in vain.
    std::_Exit(EXIT_FAILURE);
  }

  /// Whether the thread will find what is left with it.
  bool looks_around() const noexcept { return asleep_.load(detail::MemoryOrder::seq_cst) < asleep_for_good; }

  void wait_by(const WaitRules& rules) noexcept {
    const std::uint64_t word = detail::RulesWord::of(rules);
    // Callers read what stands beside it.
    if (word != rules_.load(detail::MemoryOrder::relaxed)) rules_.store(word, detail::MemoryOrder::relaxed);
  }

  bool has_work() const noexcept { return mailbox_.has_request() || !queue_.empty(); }

  /// Looks for work for so many ticks, and now and then for what was left. False if neither came.
  bool look_for_work(std::int64_t ticks) noexcept {
    const auto came = [this] { return has_work(); };
    const std::int64_t slice = detail::Ticks::in(look_again);
    while (ticks > slice) {
      if (detail::spin(slice, came) || look_for_left(detail::Clock::now())) return true;
      if (ticks != detail::Ticks::forever) ticks -= slice;
    }
    return detail::spin(ticks, came);
  }

  void wait_for_work() noexcept {
    const std::uint64_t word = rules_.load(detail::MemoryOrder::relaxed);
    const WaitRules rules = detail::RulesWord::rules(word);
    const std::int64_t looked = spin_ticks(rules, shard_takes_);
    if (look_for_work(looked)) return;
    const bool foresees = rules.foresees && bound_;
    detail::Clock::Time idle_since = detail::Clock::now() - detail::Ticks::nanoseconds(looked);
    idle_since_.store(idle_since, detail::MemoryOrder::relaxed);
    while (!has_work()) {
      const detail::Clock::Time now = detail::Clock::now();
      if (look_for_left(now)) return;
      const bool looks = is_left() || (rules.keeps_small && now - idle_since < looks_for);
      detail::Clock::Time until = looks ? next_look_ : detail::Clock::never;
      if (foresees && arrivals_.are_regular()) {
        const detail::Arrivals::Window window = arrivals_.next(idle_since);
        if (now >= window.begin && now < window.end) {
          if (look_for_work(detail::Ticks::in(window.end - now))) break;
          continue;
        }
        if (now < window.begin && window.begin < until) until = window.begin;
      }
      sleep(until, looks);
      if (rules_.load(detail::MemoryOrder::relaxed) != word) return;  // a call came that waits in another way
      idle_since =
          idle_since_.load(detail::MemoryOrder::relaxed);  // calls that ran what they would have given to this thread
    }
    if (foresees) arrivals_.note(idle_since, detail::Clock::now());
  }

  bool is_left() const noexcept { return left_.load(detail::MemoryOrder::relaxed) != nullptr; }

  /// Between two pieces of work, of which there may be no end.
  void look_while_busy() noexcept {
    if (is_left()) look_for_left(detail::Clock::now());
  }

  /// Runs a deferred task if the look before saw it, too, since its caller then waits for it. Looks at intervals.
  /// Returns true if it ran a task.
  bool look_for_left(detail::Clock::Time now) noexcept {
    if (now < next_look_) return false;
    const bool left = is_left();
    next_look_ = now + (left ? look_again : between_looks);
    if (!left) return false;
    if (left_was_seen_.load(detail::MemoryOrder::relaxed)) return run_left();
    left_was_seen_.store(true, detail::MemoryOrder::relaxed);
    return false;
  }

  /// False if the device is not free, or the task was taken back.
  bool run_left() noexcept {
    if (!mailbox_.try_take()) return false;
    const std::uint32_t epoch = detail::fork_epoch();
    detail::Task* task = left_.exchange(nullptr, detail::MemoryOrder::acq_rel);
    if (task != nullptr) task->run();
    if (epoch == detail::fork_epoch()) mailbox_.give();
    return task != nullptr;
  }

  /// Sleeps until then at most. A thread that `looks` will look for what is left with it by then.
  void sleep(detail::Clock::Time until, bool looks) noexcept {
    if (!mailbox_.stop_attending()) return;
    const std::uint32_t how = looks ? asleep : asleep_for_good;
    asleep_.store(how, detail::MemoryOrder::seq_cst);
    if (!has_work() && (how == asleep || left_.load(detail::MemoryOrder::seq_cst) == nullptr)) {
      if (until != detail::Clock::never) {
        detail::park_until(asleep_, how, until);
      } else {
        detail::park(asleep_, how);
      }
    }
    asleep_.store(awake, detail::MemoryOrder::relaxed);
    mailbox_.attend();
  }

  /// The work is written before `asleep_` is read, and the thread does it the other way round: one of them notices.
  void wake() noexcept {
    std::uint32_t seen = asleep_.fetch_add(0, detail::MemoryOrder::seq_cst);
    if (seen != asleep && seen != asleep_for_good) return;
    if (asleep_.compare_exchange_strong(seen, awake)) detail::unpark_all(asleep_);
  }

  /// False if there is no thread and none can be started.
  bool start() noexcept {
    if (!has_thread()) return false;
    const detail::HeldRight starting(start_right_);
    if (started_.load(detail::MemoryOrder::relaxed)) return true;
    [[maybe_unused]] thread_local const detail::LibraryInUse until_it_runs;  // then its thread keeps its code itself
    const bool started = detail::start_thread(cores_, &Worker::enter, this, thread_name_);
    started_.store(started, detail::MemoryOrder::release);
    return started;
  }

  /// In the child of a fork: what was queued and who ran it stayed in the parent.
  void revive() noexcept {
    const detail::HeldRight reviving(start_right_);
    if (epoch_.load(detail::MemoryOrder::relaxed) == detail::fork_epoch()) return;
    queue_.forget();
    left_.store(nullptr, detail::MemoryOrder::relaxed);
    mailbox_.forget();
    started_.store(false, detail::MemoryOrder::relaxed);
    asleep_.store(not_started, detail::MemoryOrder::relaxed);
    epoch_.store(detail::fork_epoch(), detail::MemoryOrder::release);
  }

  const DeviceId id_;
  const std::string thread_name_ = "fanout " + to_string(id_);
  const std::vector<int> cores_;
  const bool bound_;
  detail::Right start_right_;
  detail::Mailbox mailbox_;
  alignas(detail::cache_line) detail::TaskQueue queue_;
  // What callers look at, in one line; it is written when the thread begins or ends to sleep, and by calls that leave
  // something.
  alignas(detail::cache_line) detail::Atomic<bool> started_{false};
  detail::Atomic<std::uint32_t> epoch_{detail::fork_epoch()};
  detail::Atomic<std::uint32_t> asleep_{not_started};
  detail::Atomic<std::uint32_t> times_left_{0};
  detail::Atomic<detail::Task*> left_{nullptr};
  detail::Atomic<detail::Clock::Time> idle_since_{0};
  detail::Atomic<std::uint64_t> rules_{detail::RulesWord::of(Adaptive::rules)};  // the thread's
  detail::Atomic<bool> left_was_seen_{false};                                    // at the thread's last look
  alignas(detail::cache_line) detail::Arrivals arrivals_;
  std::int64_t shard_takes_ = 0;       // the last one, as was expected; the thread's alone, as what follows
  detail::Clock::Time next_look_ = 0;  // for what was left
};

}}}  // namespace fanout::v0::backend
