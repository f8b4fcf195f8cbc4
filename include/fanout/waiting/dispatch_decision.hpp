// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/plan/plan.hpp>
#include <fanout/sync/ticks.hpp>
#include <fanout/waiting/call_statistics.hpp>
#include <fanout/waiting/wait_policy.hpp>
#include <fanout/waiting/wake_latency.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Which shards a call runs inline, on its own thread: none, those of devices whose threads sleep, or all.
enum class Inline { none, asleep, all };

/// Decides which shards one call runs inline, from the statistics of earlier calls, and adds the times of this call.
/// Without statistics all shards are dispatched.
class DispatchDecision {
 public:
  DispatchDecision(CallStatistics* times, const Plan& plan, const WaitRules& rules) noexcept {
    if (times == nullptr || plan.size() < 2 || !rules.inlines_small) return;
    rows_ = plan[0].rows.size();
    expected_ = times->body.expected(rows_);
    if (expected_ != ShardTimeEstimate::unknown && !times->dispatch_cost.is_worth(expected_, plan.size()) &&
        times->may_inline()) {
      what_ = Inline::all;
      if (!times->is_inline_call_noted()) return;
    }
    times_ = times;
    begin_ = Ticks::now();
  }

  /// Runs the shards of sleeping threads inline if a wake-up would take longer than it saves. If dispatching them to
  /// threads that are awake would have saved time, notes the call with these threads, so that they predict the next
  /// ones.
  template <class Tasks>
  [[gnu::noinline]] void check_sleeping_workers(Tasks& tasks) noexcept {
    if (times_ == nullptr || expected_ == ShardTimeEstimate::unknown) return;
    std::int64_t asleep = 0;
    for (auto& task : tasks) asleep += task.shard != 0 && task.worker->is_asleep() ? 1U : 0U;
    all_awake_ = asleep == 0;
    if (all_awake_ || Ticks::nanoseconds(expected_ * asleep) >= wake_latency.nanoseconds()) return;
    if (!times_->may_inline()) return;
    all_asleep_ = asleep + 1 == static_cast<std::int64_t>(tasks.size());
    what_ = all_asleep_ ? Inline::all : Inline::asleep;
    const std::int64_t nanoseconds = 2 * Ticks::nanoseconds(expected_);
    if (nanoseconds < worth_predicting) return;
    for (auto& task : tasks) {
      if (task.shard != 0 && task.worker->is_asleep()) task.worker->note_deferred(nanoseconds);
    }
  }

  Inline what() const noexcept { return what_; }
  /// The expected Ticks of a shard, or less than 1 if unknown.
  std::int64_t expected() const noexcept { return expected_; }

  /// Called before and after the caller's own shard.
  void own_begins() noexcept {
    own_begin_ = begin_;
    if (times_ != nullptr && (what_ != Inline::all || all_asleep_)) own_begin_ = Ticks::now();
  }
  void own_ends() noexcept {
    if (times_ == nullptr) return;
    own_ = Ticks::now() - own_begin_;
    times_->body.note(rows_, own_, expected_);
  }

  /// Called when all shards have ended.
  void all_ended(std::size_t shards) noexcept {
    if (times_ == nullptr) return;
    if (what_ == Inline::all) {
      times_->dispatch_cost.note_inline(Ticks::now() - begin_ - own_ * static_cast<std::int64_t>(shards));
    } else if (what_ == Inline::none && all_awake_) {
      times_->dispatch_cost.note_dispatched(Ticks::now() - begin_ - own_);
    }
  }

 private:
  /// Shards of less than this time, in nanoseconds, are not worth a prediction.
  static constexpr std::int64_t worth_predicting = 2'000;

  CallStatistics* times_ = nullptr;
  Inline what_ = Inline::none;
  bool all_awake_ = false;
  bool all_asleep_ = false;
  std::size_t rows_ = 0;
  std::int64_t expected_ = ShardTimeEstimate::unknown;
  std::int64_t begin_ = 0;
  std::int64_t own_begin_ = 0;
  std::int64_t own_ = 0;
};

}}}  // namespace fanout::v0::detail
