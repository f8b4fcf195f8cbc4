// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/device/wait_policy.hpp>
#include <fanout/device/wake_cost.hpp>
#include <fanout/parallel/call_times.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/ticks.hpp>

namespace fanout::inline v0::detail {

/// Which shards a call does not hand out.
enum class Keeping { none, asleep, all };

/// Decides what one call keeps, by what earlier ones took, and notes what this one takes. Where nothing is learnt it
/// keeps none.
class CallKeeping {
 public:
  CallKeeping(CallTimes* times, const Plan& plan, const WaitRules& rules) noexcept {
    if (times == nullptr || plan.size() < 2 || !rules.keeps_small) return;
    rows_ = plan[0].rows.size();
    expected_ = times->body.expected(rows_);
    if (expected_ != BodyTime::unknown && !times->handing_out.is_worth(expected_, plan.size())) {
      what_ = Keeping::all;
      if (!times->is_kept_call_noted()) return;
    }
    times_ = times;
    begin_ = Ticks::now();
  }

  /// Some shards are handed out, if their devices' threads are awake, or else if they gain more than a wake costs.
  template <class Tasks>
  void look_who_sleeps(Tasks& tasks) noexcept {
    if (times_ == nullptr || expected_ == BodyTime::unknown) return;
    std::int64_t asleep = 0;
    for (auto& task : tasks) asleep += task.shard != 0 && task.worker->is_asleep() ? 1 : 0;
    all_awake_ = asleep == 0;
    all_asleep_ = asleep + 1 == static_cast<std::int64_t>(tasks.size());
    if (asleep == 0) return;
    if (Ticks::nanoseconds(expected_ * asleep) < wake_cost.nanoseconds()) {
      what_ = Keeping::asleep;
    }
  }

  Keeping what() const noexcept { return what_; }
  /// How long a shard is expected to take, in nanoseconds.
  std::int64_t expected() const noexcept { return Ticks::nanoseconds(expected_); }

  /// Runs the caller's own shard.
  template <class Body>
  void run_own(const Body& body, std::size_t shard) noexcept {
    if (times_ == nullptr) return body(shard);
    const std::int64_t own_begin = Ticks::now();
    body(shard);
    own_ = Ticks::now() - own_begin;
    times_->body.note(rows_, own_, expected_);
  }

  /// The same as the first of all, where all are kept.
  template <class Body>
  void run_own_first(const Body& body, std::size_t shard) noexcept {
    body(shard);
    if (times_ == nullptr) return;
    own_ = Ticks::now() - begin_;
    times_->body.note(rows_, own_, expected_);
  }

  /// All shards have ended.
  void all_ended(std::size_t shards) noexcept {
    if (times_ == nullptr) return;
    if (what_ == Keeping::all || (what_ == Keeping::asleep && all_asleep_)) {
      times_->handing_out.note_kept(Ticks::now() - begin_ - own_ * static_cast<std::int64_t>(shards));
    } else if (what_ == Keeping::none && all_awake_) {
      times_->handing_out.note_handed_out(Ticks::now() - begin_ - own_);
    }
  }

 private:
  CallTimes* times_ = nullptr;
  Keeping what_ = Keeping::none;
  bool all_awake_ = false;
  bool all_asleep_ = false;
  std::size_t rows_ = 0;
  std::int64_t expected_ = BodyTime::unknown;
  std::int64_t begin_ = 0;
  std::int64_t own_ = 0;
};

}  // namespace fanout::inline v0::detail
