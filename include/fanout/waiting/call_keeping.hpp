// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/plan/plan.hpp>
#include <fanout/sync/ticks.hpp>
#include <fanout/waiting/call_times.hpp>
#include <fanout/waiting/wait_policy.hpp>
#include <fanout/waiting/wake_cost.hpp>

namespace fanout { inline namespace v0 { namespace detail {

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
    if (expected_ != BodyTime::unknown && !times->handing_out.is_worth(expected_, plan.size()) && times->may_keep()) {
      what_ = Keeping::all;
      if (!times->is_kept_call_noted()) return;
    }
    times_ = times;
    begin_ = Ticks::now();
  }

  /// Unless all are kept already: shards whose devices' threads sleep are kept if they gain less than a wake costs. The
  /// threads are told, where they would have gained, so that they foresee such calls.
  template <class Tasks>
  [[gnu::noinline]] void look_who_sleeps(Tasks& tasks) noexcept {
    if (times_ == nullptr || expected_ == BodyTime::unknown) return;
    std::int64_t asleep = 0;
    for (auto& task : tasks) asleep += task.shard != 0 && task.worker->is_asleep() ? 1 : 0;
    all_awake_ = asleep == 0;
    if (all_awake_ || Ticks::nanoseconds(expected_ * asleep) >= wake_cost.nanoseconds()) return;
    if (!times_->may_keep()) return;
    all_asleep_ = asleep + 1 == static_cast<std::int64_t>(tasks.size());
    what_ = all_asleep_ ? Keeping::all : Keeping::asleep;
    const std::int64_t nanoseconds = 2 * Ticks::nanoseconds(expected_);
    if (nanoseconds < worth_foreseeing) return;
    for (auto& task : tasks) {
      if (task.shard != 0 && task.worker->is_asleep()) task.worker->note_left(nanoseconds);
    }
  }

  Keeping what() const noexcept { return what_; }
  /// How many ticks a shard is expected to take, or less than 1.
  std::int64_t expected() const noexcept { return expected_; }

  /// Stand around the caller's own shard. Where all are kept by what was learnt, that comes at once.
  void own_begins() noexcept {
    own_begin_ = begin_;
    if (times_ != nullptr && (what_ != Keeping::all || all_asleep_)) own_begin_ = Ticks::now();
  }
  void own_ends() noexcept {
    if (times_ == nullptr) return;
    own_ = Ticks::now() - own_begin_;
    times_->body.note(rows_, own_, expected_);
  }

  /// All shards have ended.
  void all_ended(std::size_t shards) noexcept {
    if (times_ == nullptr) return;
    if (what_ == Keeping::all) {
      times_->handing_out.note_kept(Ticks::now() - begin_ - own_ * static_cast<std::int64_t>(shards));
    } else if (what_ == Keeping::none && all_awake_) {
      times_->handing_out.note_handed_out(Ticks::now() - begin_ - own_);
    }
  }

 private:
  /// Running less than that at the same time gains nothing that the watching would be worth, in nanoseconds.
  static constexpr std::int64_t worth_foreseeing = 2'000;

  CallTimes* times_ = nullptr;
  Keeping what_ = Keeping::none;
  bool all_awake_ = false;
  bool all_asleep_ = false;
  std::size_t rows_ = 0;
  std::int64_t expected_ = BodyTime::unknown;
  std::int64_t begin_ = 0;
  std::int64_t own_begin_ = 0;
  std::int64_t own_ = 0;
};

}}}  // namespace fanout::v0::detail
