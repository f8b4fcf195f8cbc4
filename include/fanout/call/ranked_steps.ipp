// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/ranked_steps.hpp>

#include <cstdint>
#include <exception>
#include <memory>

#include <fanout/base/error.hpp>
#include <fanout/call/ranks_late.hpp>

namespace fanout { inline namespace v0 { namespace detail {

template <class F>
void RankedSteps::make(backend::RankedStep& step, const F& f) {
  bool is_made = false;
  step.is_made = &is_made;
  const int left = std::exchange(left_, 0) - 1;
  try {
    f();
  } catch (...) {
    if (is_made) left_ = left;
    throw;
  }
  left_ = left;
}

void RankedSteps::set(const CallSettings& settings, RankedCalls& calls, const RankedCallType& type, int steps,
                      bool meets) noexcept {
  ranks_ = settings.ranks;
  type_ = &type;
  left_ = steps + (meets ? 1 : 0);
  meets_ = meets;
  rendezvous_ = nullptr;
  collectives_ = settings.collectives;
  model_ = calls.model;
  number_ = calls.count.fetch_add(1, MemoryOrder::relaxed);
  rows_ = 0;
  shards_ = 0;
  deadline_ = {.patience = settings.deadline};
  start_clock();
}

void RankedSteps::start_clock() noexcept {
  if (deadline_.exists()) deadline_.at = Clock::after(deadline_.patience);
}

void RankedSteps::begin(CallFrame& call) {
  rows_ = call.plan.rows();
  shards_ = call.plan.size();
  if (meets_ && shards_ > 1) ranks_->check_any_thread();
  deadline_.at = call.deadline;
  backend::RankedStep first = step(nullptr);
  first.plan = &call.plan;
  first.devices = call.devices;
  first.collectives = collectives_;
  first.random_call = &call.number;  // not number_, which also counts calls that drew none
  make(first, [&] { place_ = ranks_->begin(first, meets_ ? &rendezvous_ : nullptr); });
  call.place = &place_;
  call.processes = rendezvous_;
}

void RankedSteps::wait_anew() noexcept {
  start_clock();
  if (rendezvous_ != nullptr) rendezvous_->wait_until(deadline_.at);
}

void RankedSteps::join() {
  leave_rendezvous();
  combine(nullptr, nullptr);
  end_rendezvous();
}

void RankedSteps::combine(void (*visit)(const void*, backend::RankedValues&), const void* of) {
  backend::RankedStep next = step(nullptr);
  next.visit = visit;
  next.of = of;
  make(next, [&] { ranks_->combine(next); });
}

void RankedSteps::tell() {
  leave_rendezvous();
  const std::unique_ptr<backend::ProcessRendezvous> ended(std::exchange(rendezvous_, nullptr));  // after the step
  if (std::exchange(left_, 0) != 0) ranks_->combine(step(std::current_exception()));
}

void RankedSteps::end() noexcept {
  if (left_ == 0) return end_rendezvous();
  start_clock();
  try {
    throw Error(std::uncaught_exceptions() != 0
                    ? "the result of an asynchronous call was not taken, since an exception ended its scope"
                    : "the result of an asynchronous call was not taken; call get() on all ranks, in the same order");
  } catch (...) {
    try {
      tell();
    } catch (...) {  // the others throw it, too
    }
  }
}

void RankedSteps::throw_if_late(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const RanksLate& late) {
    throw Timeout(late);  // of another type: a call around this one lists it like any exception of its forward
  } catch (...) {
  }
}

backend::RankedStep RankedSteps::step(const std::exception_ptr& failure) const noexcept {
  const RankedCallType& type = *type_;
  std::uint64_t hash = type.hash;
  backend::RankedStep::mix(hash, model_);
  return {.hash = hash ^ (((std::uint64_t{number_} << 3U) + static_cast<unsigned>(left_)) * 0x9E3779B97F4A7C15U),
          .name = type.model,
          .returns = type.result,
          .model = model_,
          .number = number_,
          .rows = rows_,
          .shards = shards_,
          .failure = failure,
          .deadline = deadline_};
}

}}}  // namespace fanout::v0::detail
