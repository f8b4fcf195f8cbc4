// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/schedule/flow.hpp>

#include <cstddef>
#include <cstdint>

#include <fanout/sync/clock.hpp>
#include <fanout/sync/futex.hpp>
#include <fanout/waiting/wait_policy.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void Flow::FromStep::operator()(std::size_t step) const noexcept {
  for (;;) {
    const Clock::Time end = flow->run_body(step);
    if (flow->forked()) return;  // forked by the step: the child has no other steps
    flow->end_.raise(end);
    const std::size_t(&then)[3] = flow->steps_[step].then;
    for (const std::size_t later : then) {
      if (later != none) flow->steps_[later].ready.raise(end);
    }
    for (const std::size_t later : {then[1], then[2]}) {
      if (later != none && flow->arrive(later)) flow->post(later);
    }
    const bool goes_on = then[0] != none && flow->arrive(then[0]);
    step = then[0];
    if (flow->left_.fetch_sub(1, MemoryOrder::acq_rel) == 1) flow->end();
    if (!goes_on) return;
  }
}

Clock::Time Flow::run_body(std::size_t step) noexcept {
  const DeviceClock& clock = steps_[step].device->clock;
  const Clock::Time ready = steps_[step].ready.now();
  if (!clock.is_own()) {
    body_->run(body_->body, step);
    return ready;
  }
  return clock.run_from(ready, [&]() noexcept { body_->run(body_->body, step); });
}

void Flow::begin(const ShardRunner& runner) {
  body_ = &runner;
  left_.store(added_, MemoryOrder::relaxed);
  for (const Step& step : steps_) {
    if (step.device == nullptr || !step.device->clock.is_own()) continue;
    steps_[0].ready.raise(step.device->clock.now());
    clocks_.push_back(step.device->clock);
  }
  if (time_ != nullptr) time_->begin(clocks_.empty() ? Clock::now() : steps_[0].ready.now());
}

void Flow::run_all(const ShardRunner& runner) {
  begin(runner);
  for (const Step& step : steps_) {
    if (step.device != nullptr) steps_[0].device->worker->take_caller_from(*step.device->worker);
  }
  from_step_(0);
  if (!wait()) refuse_after_fork();
}

void Flow::start(const ShardRunner& runner) {
  begin(runner);
  post(0);
}

bool Flow::wait() noexcept {
  const auto ended = [this] { return has_ended_.load(MemoryOrder::acquire) || forked(); };
  while (!ended()) {
    if (ShardTask* task = take_back()) {
      task->run();
      continue;
    }
    const std::uint32_t seen = told_.load(MemoryOrder::acquire);
    sleeps_.store(true, MemoryOrder::seq_cst);
    if (ShardTask* task = take_back()) {
      sleeps_.store(false, MemoryOrder::relaxed);
      task->run();
    } else if (!ended()) {
      park(told_, seen);
    }
    sleeps_.store(false, MemoryOrder::relaxed);
  }
  for (ShardTask& task : tasks_) {
    if (!task.wait({}, Park::rules, 0, epoch_)) return false;
  }
  for (const DeviceClock& clock : clocks_) clock.wait_until(end_.now());
  return true;
}

void Flow::end() noexcept {
  if (time_ != nullptr) time_->end(clocks_.empty() ? Clock::now() : end_.now());
  if (watcher_ != nullptr) watcher_->flow_has_ended();
  has_ended_.store(true, MemoryOrder::release);
  tell();
}

void Flow::post(std::size_t step) noexcept {
  const WaitRules* const rules = steps_[step].device->rules;
  tasks_[step].post(tasks_runner_, rules == nullptr ? Park::rules : *rules);
  steps_[step].posted.store(true, MemoryOrder::seq_cst);
  if (sleeps_.load(MemoryOrder::seq_cst)) tell();
  if (watcher_ != nullptr) watcher_->step_was_posted();
}

ShardTask* Flow::take_back() noexcept {
  const bool others_may = watcher_ != nullptr;
  if (others_may) taking_.lock();
  ShardTask* taken = nullptr;
  for (std::size_t i = 0; i < steps_.size() && taken == nullptr; ++i) {
    if (steps_[i].posted.load(MemoryOrder::seq_cst) && tasks_[i].take_back()) taken = &tasks_[i];
  }
  if (others_may) taking_.unlock();
  return taken;
}

void Flow::tell() noexcept {
  told_.fetch_add(1, MemoryOrder::seq_cst);
  unpark_all(told_);
}

}}}  // namespace fanout::v0::detail
