// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/device/collective.hpp>
#include <fanout/device/collective_operations.hpp>
#include <fanout/device/host_collective.hpp>
#include <fanout/device/meeting_rank.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>
#include <fanout/sync/right.hpp>

namespace fanout::inline v0 {

/// Where threads meet that are the ranks of one row: each brings its collectives and waits until they have run. What all
/// ranks have called they run together, each rank a part of it; what was sent is copied by who receives it.
///
/// Calls that can never run are errors and not a wait for ever: calls that do not fit together (StructureMismatch,
/// ShapeMismatch: on all ranks that made them), and calls that need a rank that has left (CommunicatorAbandoned).
class HostMeeting {
 public:
  explicit HostMeeting(std::size_t ranks) : ranks_(ranks), round_calls_(ranks) {}
  HostMeeting(const HostMeeting&) = delete;
  HostMeeting& operator=(const HostMeeting&) = delete;

  /// Who runs `direct` calls, with what they share; before the first of them.
  struct Direct {
    const CollectiveOperations* operations = nullptr;
    void* shared = nullptr;
  };
  void run_direct_by(const Direct& direct) noexcept { direct_ = direct; }

  std::size_t size() const noexcept { return ranks_.size(); }

  /// Makes a rank's calls, which start together; returns when they have run. The arrays lie in host memory. Throws what
  /// the class says, and Error in the child of a fork.
  void meet(std::size_t rank, Collective* calls, std::size_t count) {
    meet(rank, calls, count, Clock::never, []() noexcept {});
  }

  /// The same, and calls `help()` once if it has waited for so many nanoseconds; holds nothing then.
  template <class Help>
  void meet(std::size_t rank, Collective* calls, std::size_t count, Clock::Time patience, const Help& help) {
    if (count == 0) return;
    if (epoch_ != fork_epoch()) refuse_after_fork();
    Held held(right_);
    Rank& self = ranks_[rank];
    if (self.inside) refuse_second_thread(rank);
    self.enter(calls, count);
    ++inside_;
    if (self.next_send() != nullptr) signal();  // who receives it may sleep
    begin_round();
    Clock::Time help_at = Clock::never;
    if (patience != Clock::never) help_at = 0;  // when it first has to wait, this is set
    for (;;) {
      if (round_ != 0 && !self.worked) {
        work(rank, held);
      } else if (Collective* received = next_to_receive(rank)) {
        receive(rank, *received, held);
      } else if (may_go(self)) {
        --inside_;
        self.inside = false;
        std::exchange(self.verdict, {}).raise();
        return;
      } else if (!judge(rank)) {
        if (help_at == 0) help_at = Clock::now() + patience;
        if (help_at == Clock::never || Clock::now() < help_at) {
          wait(held, help_at);
        } else {
          help_at = Clock::never;
          held.give();
          help();
          held.take();
        }
      }
    }
  }

  /// A rank will not come any more: its thread ends, by this exception if there is one. Others that need it are released.
  /// More than once does no harm.
  void leave(std::size_t rank, const std::exception_ptr& why) noexcept {
    const Held held(right_);
    Rank& self = ranks_[rank];
    if (!self.gone) {
      self.culprit = rank;
      self.gone = true;
      ++gone_;
    }
    if (why != nullptr) self.keep(why);
    signal();
  }

  /// Lets nobody wait any more, for this reason: what all calls throw from now on as Error.
  void break_off(const char* why) noexcept {
    const Held held(right_);
    broken_ = why;
    signal();
  }

 private:
  using Rank = detail::MeetingRank;
  using Verdict = detail::MeetingVerdict;
  using Progress = Collective::Progress;

  /// The right, which may be given back and taken again meanwhile.
  class Held {
   public:
    explicit Held(Right& right) noexcept : right_(right) { right_.take(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { right_.give(); }
    void give() noexcept { right_.give(); }
    void take() noexcept { right_.take(); }

   private:
    Right& right_;
  };

  /// Starts what all ranks have come to call, if they have: as many of their calls as fit together.
  void begin_round() {
    if (round_ != 0 || inside_ != size() || broken_ != nullptr) return;
    for (std::size_t i = 0; i < size(); ++i) {
      if (ranks_[i].verdict.what != Verdict::none) return;
      round_calls_[i] = ranks_[i].next_of_all();
    }
    detail::Fit fit = detail::Fit::fits;
    std::size_t fitting = 0;
    while (fit == detail::Fit::fits && all_have_next()) {
      for (std::size_t i = 1; i < size() && fit == detail::Fit::fits; ++i) {
        fit = detail::fit(*round_calls_[0], *round_calls_[i]);
      }
      if (fit != detail::Fit::fits) break;
      ++fitting;
      step(round_calls_.data());
    }
    if (fitting == 0 && fit != detail::Fit::fits) return judge_all(fit, round_calls_.data());
    if (fitting == 0) return;
    round_ = fitting;
    working_ = size();
    for (Rank& rank : ranks_) rank.worked = false;
    signal();
  }

  bool all_have_next() const noexcept {
    for (const Collective* call : round_calls_) {
      if (call == nullptr) return false;
    }
    return true;
  }
  /// From one call of each rank to the next that all make.
  void step(const Collective** calls) const noexcept {
    for (std::size_t i = 0; i < size(); ++i) calls[i] = ranks_[i].next_of_all(calls[i]);
  }

  void work(std::size_t rank, Held& held) {
    ranks_[rank].worked = true;
    held.give();
    InlineArray<const Collective*> calls(size(), [this](std::size_t i) { return ranks_[i].next_of_all(); });
    std::string failure;
    for (std::size_t k = 0; k < round_; ++k) {
      detail::HostCollective(calls.data(), size()).run_part_of(rank, k);
      step(calls.data());
    }
    if (rank == 0) failure = run_direct_round();
    held.take();
    if (!failure.empty()) round_failure_ = std::move(failure);
    if (--working_ == 0) end_round();
  }

  void end_round() {
    for (Rank& rank : ranks_) {
      for (std::size_t k = 0; k < round_; ++k) rank.finish(*rank.next_of_all());
      if (!round_failure_.empty()) rank.verdict = {.what = Verdict::broken, .text = round_failure_};
    }
    round_failure_.clear();
    round_ = 0;
    signal();
    begin_round();
  }

  /// Lets the devices run what they take of this round, for all ranks at once. What they throw.
  std::string run_direct_round() {
    std::vector<RankedCall> direct;
    for (std::size_t i = 0; i < size(); ++i) {
      const Collective* call = ranks_[i].next_of_all();
      for (std::size_t k = 0; k < round_; ++k, call = ranks_[i].next_of_all(call)) {
        if (call->direct) direct.push_back({.rank = i, .call = call});
      }
    }
    return direct.empty() ? std::string() : run_direct(direct.data(), direct.size());
  }
  std::string run_direct(const RankedCall* calls, std::size_t count) noexcept {
    try {
      direct_.operations->run(direct_.shared, calls, count);
      return {};
    } catch (const std::exception& exception) {
      direct_.operations->abort(direct_.shared);
      return exception.what();
    } catch (...) {
      direct_.operations->abort(direct_.shared);
      return "an exception that is no std::exception";
    }
  }

  /// What this rank can copy now: a recv whose send has come.
  Collective* next_to_receive(std::size_t rank) noexcept {
    Rank& self = ranks_[rank];
    if (broken_ != nullptr || self.verdict.what != Verdict::none) return nullptr;
    for (std::size_t i = 0; i < self.count; ++i) {
      Collective& call = self.calls[i];
      if (call.kind == Collective::Kind::recv && call.progress == Progress::open && sent(rank, call) != nullptr) {
        return &call;
      }
    }
    return nullptr;
  }
  Collective* sent(std::size_t to, const Collective& recv) noexcept {
    const Rank& other = ranks_[recv.root];
    return other.verdict.what == Verdict::none ? other.next_sent_to(to) : nullptr;
  }

  void receive(std::size_t rank, Collective& recv, Held& held) {
    Rank& self = ranks_[rank];
    Rank& other = ranks_[recv.root];
    Collective& send = *sent(rank, recv);
    if (const detail::Fit fit = detail::fit(send, recv); fit != detail::Fit::fits) {
      const std::string text = Rank::text_of(recv.root, send) + ", " + Rank::text_of(rank, recv);
      self.verdict = other.verdict = Verdict::of(fit, text);
      return signal();
    }
    recv.progress = send.progress = Progress::moving;
    ++self.moving;
    ++other.moving;
    held.give();
    std::string failure;
    if (recv.direct) {
      const RankedCall both[] = {{.rank = recv.root, .call = &send}, {.rank = rank, .call = &recv}};
      failure = run_direct(both, 2);
    } else {
      detail::copy_elements(recv.to, send.from, recv.bytes());
    }
    held.take();
    --self.moving;
    --other.moving;
    self.finish(recv);
    other.finish(send);
    if (!failure.empty()) self.verdict = other.verdict = {.what = Verdict::broken, .text = failure};
    signal();
  }

  /// Whether its calls have run, or will not; nobody touches its arrays then.
  bool may_go(const Rank& self) const noexcept {
    return round_ == 0 && self.moving == 0 && (self.left == 0 || self.verdict.what != Verdict::none);
  }

  /// Finds out whether this rank would wait for ever. True if somebody need not wait any more.
  bool judge(std::size_t rank) {
    Rank& self = ranks_[rank];
    if (round_ != 0 || self.moving != 0) return false;
    if (broken_ != nullptr) {
      self.verdict = {.what = Verdict::broken, .text = broken_};
      return true;
    }
    if (const Collective* call = abandoned(self)) {
      const std::size_t culprit = ranks_[needed_by(*call)].culprit;
      self.verdict = Verdict::of_rank_that_left(Rank::text_of(rank, *call), culprit, ranks_[culprit]);
      return true;
    }
    if (inside_ + gone_ < size() || !all_wait()) return false;
    for (std::size_t i = 0; i < size(); ++i) round_calls_[i] = ranks_[i].first_open();
    judge_all(detail::Fit::other_structure, round_calls_.data());
    return true;
  }

  /// The call of a rank that waits for one that has left, or null.
  const Collective* abandoned(const Rank& rank) const noexcept {
    for (std::size_t i = 0; i < rank.count && gone_ != 0; ++i) {
      const Collective& call = rank.calls[i];
      if (call.progress == Progress::open && ranks_[needed_by(call)].gone) return &call;
    }
    return nullptr;
  }
  /// A rank without which a call cannot run; when some have left, one of these if it needs one.
  std::size_t needed_by(const Collective& call) const noexcept {
    return call.is_between_two() ? call.root : first_gone();
  }

  /// Whether nobody that is inside has anything to do.
  bool all_wait() noexcept {
    for (std::size_t i = 0; i < size(); ++i) {
      const Rank& rank = ranks_[i];
      if (rank.inside && (rank.left == 0 || rank.moving != 0 || rank.verdict.what != Verdict::none)) return false;
      if (rank.inside && (next_to_receive(i) != nullptr || abandoned(rank) != nullptr)) return false;
    }
    return true;
  }

  /// All that are inside learn that their calls do not fit together; `calls[i]` is null for a rank that has left.
  void judge_all(detail::Fit fit, const Collective* const* calls) {
    std::string text;
    for (std::size_t i = 0; i < size(); ++i) {
      if (i != 0) text += ", ";
      text += calls[i] != nullptr ? Rank::text_of(i, *calls[i]) : "rank " + std::to_string(i) + " has left";
    }
    for (Rank& rank : ranks_) {
      if (rank.inside) rank.verdict = Verdict::of(fit, text);
    }
    signal();
  }

  /// The one that left because of itself, if there is one.
  std::size_t first_gone() const noexcept {
    std::size_t found = size();
    for (std::size_t i = size(); i > 0; --i) {
      if (ranks_[i - 1].gone && (found == size() || ranks_[i - 1].threw())) found = i - 1;
    }
    return found;
  }

  void wait(Held& held, Clock::Time until) noexcept {
    const std::uint32_t turn = turn_.load(MemoryOrder::relaxed);
    ++sleepers_;
    held.give();
    if (until == Clock::never) {
      park(turn_, turn);
    } else {
      park_until(turn_, turn, until);
    }
    held.take();
    --sleepers_;
  }
  void signal() noexcept {
    turn_.fetch_add(1, MemoryOrder::relaxed);
    if (sleepers_ != 0) unpark_all(turn_);
  }

  [[noreturn]] static void refuse_after_fork() {
    throw Error(explain({.what = "a collective was called in the child of a fork",
                         .expected = "all ranks in one process",
                         .found = "ranks that stayed in the parent"}));
  }
  [[noreturn]] static void refuse_second_thread(std::size_t rank) {
    throw Error(explain({.what = "two threads call collectives as one rank at once",
                         .where = "rank " + std::to_string(rank),
                         .advice = "call them from the thread that runs the rank"}));
  }

  const std::uint32_t epoch_ = fork_epoch();
  Atomic<std::uint32_t> turn_{0};  // moves on when somebody may have something to do
  Right right_;                    // guards what follows
  std::size_t sleepers_ = 0;
  std::size_t inside_ = 0;
  std::size_t gone_ = 0;
  const char* broken_ = nullptr;
  InlineArray<Rank> ranks_;
  bool round_ = false;       // all ranks run a collective
  std::size_t working_ = 0;  // how many of them still do
  std::string round_failure_;
  InlineArray<const Collective*> round_calls_;
  Direct direct_;
};

}  // namespace fanout::inline v0
