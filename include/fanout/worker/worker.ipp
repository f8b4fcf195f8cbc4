// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/worker/worker.hpp>

#include <cstdint>
#include <cstdlib>

#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/spin.hpp>
#include <fanout/waiting/wake_latency.hpp>
#include <fanout/worker/thread.hpp>

namespace fanout { inline namespace v0 { namespace backend {

void* Worker::enter(void* worker) {
  [[maybe_unused]] thread_local const detail::LibraryInUse this_code;
  detail::this_worker = static_cast<Worker*>(worker);
  static_cast<Worker*>(worker)->loop();
  return nullptr;
}

void Worker::loop() noexcept {
  const std::uint32_t epoch = detail::fork_epoch();
  detail::wake_in_time();
  asleep_.store(awake, detail::MemoryOrder::relaxed);
  handoff_.start_polling();
  while (epoch == detail::fork_epoch()) {
    if (const detail::HandoffSlot::Request* request = handoff_.begin()) {
      if (request->woken_at != 0) detail::wake_latency.note(detail::Ticks::now() - request->woken_at);
      shard_takes_ = request->takes;
      __builtin_prefetch(request, 1);  // so that this core owns the line at completion
      request->modes.restore();
      detail::Atomic<bool>* ended = request->run(request->body, request->shard);
      if (epoch != detail::fork_epoch()) break;
      wait_by(*request->rules);  // the rules may be gone after completion
      handoff_.complete(ended);
      look_while_busy();
    } else if (!queue_.empty()) {
      // The task is popped only after the device is locked: until then its poster may take it back.
      bool ours = false;
      detail::spin(spin_ticks(rules()), [&] { return handoff_.has_request() || (ours = handoff_.try_lock()); });
      if (ours) {
        if (detail::Task* task = queue_.pop()) task->run();
        if (epoch != detail::fork_epoch()) break;
        handoff_.unlock();
        look_while_busy();
      } else {
        handoff_.await_change();
      }
    } else {
      wait_for_work();
    }
  }
  // This is the child of a fork in the task. The thread that waits for the task stayed in the parent, so nothing can
  // go on here. Ending this thread alone would leave a process that others wait for forever.
  std::_Exit(EXIT_FAILURE);
}

bool Worker::look_for_work(std::int64_t ticks) noexcept {
  const auto came = [this] { return has_work(); };
  const std::int64_t slice = detail::Ticks::in(look_again);
  while (ticks > slice) {
    if (detail::spin(slice, came) || look_for_deferred(detail::Clock::now())) return true;
    if (ticks != detail::Ticks::forever) ticks -= slice;
  }
  return detail::spin(ticks, came);
}

void Worker::wait_for_work() noexcept {
  const std::uint64_t word = rules_.load(detail::MemoryOrder::relaxed);
  const WaitRules rules = detail::RulesWord::rules(word);
  const std::int64_t looked = spin_ticks(rules, shard_takes_);
  if (look_for_work(looked)) return;
  const bool predicts = rules.predicts && bound_;
  detail::Clock::Time idle_since = detail::Clock::now() - detail::Ticks::nanoseconds(looked);
  idle_since_.store(idle_since, detail::MemoryOrder::relaxed);
  while (!has_work()) {
    const detail::Clock::Time now = detail::Clock::now();
    if (look_for_deferred(now)) return;
    const bool looks = is_deferred() || (rules.inlines_small && now - idle_since < looks_for);
    detail::Clock::Time until = looks ? next_look_ : detail::Clock::never;
    if (predicts && arrivals_.are_regular()) {
      const detail::ArrivalPredictor::Window window = arrivals_.next(idle_since);
      if (now >= window.begin && now < window.end) {
        if (look_for_work(detail::Ticks::in(window.end - now))) break;
        continue;
      }
      if (now < window.begin && window.begin < until) until = window.begin;
    }
    sleep(until, looks);
    if (rules_.load(detail::MemoryOrder::relaxed) != word) return;  // a call came with other wait rules
    idle_since = idle_since_.load(detail::MemoryOrder::relaxed);    // note_deferred() may have set it
  }
  if (predicts) arrivals_.note(idle_since, detail::Clock::now());
}

void Worker::look_while_busy() noexcept {
  if (is_deferred()) look_for_deferred(detail::Clock::now());
}

bool Worker::look_for_deferred(detail::Clock::Time now) noexcept {
  if (now < next_look_) return false;
  const bool left = is_deferred();
  next_look_ = now + (left ? look_again : between_looks);
  if (!left) return false;
  if (deferred_was_seen_.load(detail::MemoryOrder::relaxed)) return run_deferred();
  deferred_was_seen_.store(true, detail::MemoryOrder::relaxed);
  return false;
}

bool Worker::run_deferred() noexcept {
  if (!handoff_.try_lock()) return false;
  const std::uint32_t epoch = detail::fork_epoch();
  detail::Task* task = deferred_.exchange(nullptr, detail::MemoryOrder::acq_rel);
  if (task != nullptr) task->run();
  if (epoch == detail::fork_epoch()) handoff_.unlock();
  return task != nullptr;
}

void Worker::sleep(detail::Clock::Time until, bool looks) noexcept {
  if (!handoff_.stop_polling()) return;
  const std::uint32_t how = looks ? asleep : asleep_for_good;
  asleep_.store(how, detail::MemoryOrder::seq_cst);
  if (!has_work() && (how == asleep || deferred_.load(detail::MemoryOrder::seq_cst) == nullptr)) {
    if (until != detail::Clock::never) {
      detail::park_until(asleep_, how, until);
    } else {
      detail::park(asleep_, how);
    }
  }
  asleep_.store(awake, detail::MemoryOrder::relaxed);
  handoff_.start_polling();
}

bool Worker::start() noexcept {
  if (!has_thread()) return false;
  const detail::ForkSafeLock starting(start_mutex_);
  if (started_.load(detail::MemoryOrder::relaxed)) return true;
  [[maybe_unused]] thread_local const detail::LibraryInUse
      until_it_runs;  // from then on the thread keeps the library itself
  const bool started = detail::start_thread(cores_, &Worker::enter, this, thread_name_);
  started_.store(started, detail::MemoryOrder::release);
  return started;
}

void Worker::revive() noexcept {
  const detail::ForkSafeLock reviving(start_mutex_);
  if (epoch_.load(detail::MemoryOrder::relaxed) == detail::fork_epoch()) return;
  queue_.forget();
  deferred_.store(nullptr, detail::MemoryOrder::relaxed);
  handoff_.forget();
  started_.store(false, detail::MemoryOrder::relaxed);
  asleep_.store(not_started, detail::MemoryOrder::relaxed);
  epoch_.store(detail::fork_epoch(), detail::MemoryOrder::release);
}

}}}  // namespace fanout::v0::backend
