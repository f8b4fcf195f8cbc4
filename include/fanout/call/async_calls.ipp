// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/async_calls.hpp>

#include <cstddef>
#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

void AsyncCalls::post(AsyncCall& call, const Plan& plan, const DeviceTable& devices, SharedMutex& mutex,
                      bool in_order) noexcept {
  call.plan_ = &plan;
  call.mutex_ = &mutex;
  call.in_order_ = in_order;
  {
    const ForkSafeLock listing(mutex_);
    revive();
    list(call);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      if (in_order) call.tickets_[i] = turns_[plan[i].device].draw();
      call.tasks_.place(i, plan[i], devices).post(call.runner_, call.tasks_.rules());
    }
  }
  mutex.remind();
}

void AsyncCalls::begin_call(AsyncCall& call, SharedMutex& mutex) noexcept {
  call.mutex_ = &mutex;
  call.set_running(true);
  const ForkSafeLock listing(mutex_);
  revive();
  list(call);
}

void AsyncCalls::remind(AsyncCall& call) noexcept {
  call.mutex_->remind();
  if (!is_ending_.load(MemoryOrder::seq_cst)) return;
  ended_.fetch_add(1, MemoryOrder::seq_cst);
  unpark_all(ended_);
}

void AsyncCalls::end_call(AsyncCall& call) noexcept {
  call.set_running(false);
  call.mutex_->unlock_shared();
  const ForkSafeLock listing(mutex_);
  unlist(call);
  ended_.fetch_add(1, MemoryOrder::relaxed);
  unpark_all(ended_);
}

bool AsyncCalls::wait(AsyncCall& call) noexcept {
  while (!call.waited_for_) {
    if (call.forked()) return false;  // a shard that this thread has just run may have forked
    if (ShardTask* task = take_back_for(call)) {
      task->run();
      if (call.deadline_ != Clock::never && Clock::now() >= call.deadline_) call.tell_late();
    } else {
      call.waited_for_ = call.wait_for_tasks();
      // Shards may have ended late before this thread checked the clock.
      if (call.waited_for_ && call.deadline_ != Clock::never && Clock::now() >= call.deadline_) call.tell_late();
    }
  }
  return true;
}

ShardTask* AsyncCalls::take_back_for(AsyncCall& call) noexcept {
  const ForkSafeLock listing(mutex_);
  if (!call.listed_) return nullptr;
  if (!call.in_order_) return call.take_back_task();
  for (AsyncCall* before = first_; before != &call; before = before->next_) {
    if (!before->in_order_) continue;
    if (ShardTask* task = before->take_back_task()) return task;
  }
  return call.take_back_task();
}

void AsyncCalls::help() noexcept {
  while (ShardTask* task = take_back_any(false)) task->run();
}

void AsyncCalls::wait_for_ordered() {
  InlineArray<std::uint32_t> ends(turns_.size());
  {
    const ForkSafeLock listing(mutex_);
    revive();
    for (std::size_t i = 0; i < turns_.size(); ++i) ends[i] = turns_[i].drawn();
  }
  while (ShardTask* task = take_back_any(true)) task->run();
  for (std::size_t i = 0; i < turns_.size(); ++i) turns_[i].await(ends[i]);
}

void AsyncCalls::end() noexcept {
  is_ending_.store(true, MemoryOrder::seq_cst);
  for (;;) {
    const std::uint32_t seen = ended_.load(MemoryOrder::seq_cst);
    help();
    {
      const ForkSafeLock listing(mutex_);
      revive();
      if (first_ == nullptr) break;
    }
    park(ended_, seen);
  }
  release();
}

void AsyncCalls::run(AsyncCall& call, std::size_t i) noexcept {
  TicketLock& turns = turns_[(*call.plan_)[i].device];
  if (call.in_order_) turns.await(call.tickets_[i]);
  call.run_shard(i);
  if (call.forked()) return;  // forked by the shard: the child holds no ticket and no lock
  if (call.in_order_) turns.pass(call.tickets_[i]);
  if (call.running_.fetch_sub(1, MemoryOrder::acq_rel) == 1) end_call(call);
}

ShardTask* AsyncCalls::take_back_any(bool in_order) noexcept {
  const ForkSafeLock listing(mutex_);
  revive();
  for (AsyncCall* call = first_; call != nullptr; call = call->next_) {
    if (in_order && !call->in_order_) continue;
    if (ShardTask* task = call->take_back_task()) return task;
  }
  return nullptr;
}

void AsyncCalls::list(AsyncCall& call) noexcept {
  call.previous_ = last_;
  (last_ != nullptr ? last_->next_ : first_) = &call;
  last_ = &call;
  call.listed_ = true;
  if (call.in_order_) ordered_.fetch_add(1, MemoryOrder::relaxed);
}

void AsyncCalls::unlist(AsyncCall& call) noexcept {
  (call.previous_ != nullptr ? call.previous_->next_ : first_) = call.next_;
  (call.next_ != nullptr ? call.next_->previous_ : last_) = call.previous_;
  call.listed_ = false;
  if (call.in_order_) ordered_.fetch_sub(1, MemoryOrder::relaxed);
}

void AsyncCalls::revive() noexcept {
  if (epoch_ == fork_epoch()) return;
  epoch_ = fork_epoch();
  first_ = last_ = nullptr;
  ordered_.store(0, MemoryOrder::relaxed);
  for (TicketLock& turns : turns_) turns.forget();
}

void AsyncCall::keep_in(AsyncCalls& calls) noexcept {
  calls.retain();
  calls_ = &calls;
}

ShardTask* AsyncCall::take_back_task() noexcept {
  while (next_task_ < tasks_.size()) {
    ShardTask& task = tasks_[next_task_++];
    if (task.take_back()) return &task;
  }
  return nullptr;
}

bool AsyncCall::wait_for_tasks() noexcept { return tasks_.wait(runner_, deadline_); }

ShardTask* AsyncCall::take_back() noexcept { return calls_->take_back_for(*this); }

void AsyncCall::Body::operator()(std::size_t i) const noexcept { call->calls_->run(*call, i); }

}}}  // namespace fanout::v0::detail
