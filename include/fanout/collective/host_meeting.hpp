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
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_operations.hpp>
#include <fanout/collective/host_collective.hpp>
#include <fanout/collective/meeting_rank.hpp>
#include <fanout/collective/meeting_ranks.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// Where threads meet that are the ranks of one row: each brings its collectives and waits until they have run. What
/// all ranks have called they run together, each rank a part of it; what was sent is copied by who receives it.
///
/// Calls that can never run are errors and not a wait for ever: calls that do not fit together (StructureMismatch,
/// ShapeMismatch: on all ranks that made them), and calls that need a rank that has left (CommunicatorAbandoned).
class HostMeeting : public detail::MeetingRanks {
 public:
  explicit HostMeeting(std::size_t ranks) : MeetingRanks(ranks) {}

  /// Who runs `direct` calls, with what they share; before the first of them.
  struct Direct {
    const CollectiveOperations* operations = nullptr;
    void* shared = nullptr;
  };
  void run_direct_by(const Direct& direct) noexcept { direct_ = direct; }

  /// Makes a rank's calls, which start together; returns when they have run. The arrays lie in host memory. Throws what
  /// the class says, and Error in the child of a fork.
  void meet(std::size_t rank, Collective* calls, std::size_t count) {
    meet(rank, calls, count, detail::Clock::never, []() noexcept {});
  }

  /// The same, and calls `help()` once if it has waited for so many nanoseconds; holds nothing then.
  template <class Help>
  void meet(std::size_t rank, Collective* calls, std::size_t count, detail::Clock::Time patience, const Help& help) {
    if (count == 0) return;
    if (epoch_ != detail::fork_epoch()) refuse_after_fork();
    // Before the others count on this rank, since then nothing may throw any more.
    detail::InlineArray<const Collective*> calls_of_round(size());
    Held held(right_);
    Rank& self = ranks_[rank];
    if (self.inside) refuse_second_thread(rank);
    self.enter(calls, count);
    ++inside_;
    if (self.next_send() != nullptr) signal();  // who receives it may sleep
    begin_round();
    detail::Clock::Time help_at = detail::Clock::never;
    if (patience != detail::Clock::never) help_at = 0;  // when it first has to wait, this is set
    for (;;) {
      if (round_ != 0 && !self.worked) {
        work(rank, calls_of_round, held);
      } else if (Collective* received = next_to_receive(rank)) {
        receive(rank, *received, held);
      } else if (may_go(self)) {
        --inside_;
        self.inside = false;
        std::exchange(self.verdict, {}).raise();
        return;
      } else if (!judge(rank)) {
        if (help_at == 0) help_at = detail::Clock::now() + patience;
        if (help_at == detail::Clock::never || detail::Clock::now() < help_at) {
          wait(held, help_at);
        } else {
          help_at = detail::Clock::never;
          held.give();
          help();
          held.take();
        }
      }
    }
  }

 private:
  /// Starts what all ranks have come to call, if they have: as many of their calls as fit together.
  void begin_round() noexcept {
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

  /// `calls` is room for one of each rank.
  void work(std::size_t rank, detail::InlineArray<const Collective*>& calls, Held& held) noexcept {
    ranks_[rank].worked = true;
    held.give();
    for (std::size_t i = 0; i < size(); ++i) calls[i] = ranks_[i].next_of_all();
    Verdict failure;
    for (std::size_t k = 0; k < round_; ++k) {
      detail::HostCollective(calls.data(), size()).run_part_of(rank, k);
      step(calls.data());
    }
    if (rank == 0) failure = run_direct_round();
    held.take();
    if (failure.what != Verdict::none) round_failure_ = std::move(failure);
    if (--working_ == 0) end_round();
  }

  void end_round() noexcept {
    for (Rank& rank : ranks_) {
      for (std::size_t k = 0; k < round_; ++k) rank.finish(*rank.next_of_all());
      if (round_failure_.what != Verdict::none) {
        rank.verdict = Verdict::made_by([this] { return round_failure_; });
      }
    }
    round_failure_ = {};
    round_ = 0;
    signal();
    begin_round();
  }

  /// Lets the devices run what they take of this round, for all ranks at once. What they throw, if they do.
  Verdict run_direct_round() noexcept {
    return Verdict::made_by([this]() -> Verdict {
      std::vector<RankedCall> direct;
      for (std::size_t i = 0; i < size(); ++i) {
        const Collective* call = ranks_[i].next_of_all();
        for (std::size_t k = 0; k < round_; ++k, call = ranks_[i].next_of_all(call)) {
          if (call->direct) direct.push_back({.rank = i, .call = call});
        }
      }
      if (direct.empty()) return {};
      return run_direct(direct.data(), direct.size());
    });
  }
  Verdict run_direct(const RankedCall* calls, std::size_t count) noexcept {
    try {
      direct_.operations->run(direct_.shared, calls, count);
      return {};
    } catch (const std::exception& exception) {
      direct_.operations->abort(direct_.shared);
      return broken_by(exception.what());
    } catch (...) {
      direct_.operations->abort(direct_.shared);
      return broken_by("an exception that is no std::exception");
    }
  }
  static Verdict broken_by(const char* what) noexcept {
    return Verdict::made_by([what] { return Verdict{.what = Verdict::broken, .text = what}; });
  }

  void receive(std::size_t rank, Collective& recv, Held& held) noexcept {
    Rank& self = ranks_[rank];
    Rank& other = ranks_[recv.root];
    Collective& send = *sent(rank, recv);
    if (const detail::Fit fit = detail::fit(send, recv); fit != detail::Fit::fits) {
      const auto verdict = [&] {
        return Verdict::of(fit, Rank::text_of(recv.root, send) + ", " + Rank::text_of(rank, recv));
      };
      self.verdict = Verdict::made_by(verdict);
      other.verdict = Verdict::made_by(verdict);
      return signal();
    }
    recv.progress = send.progress = Progress::moving;
    ++self.moving;
    ++other.moving;
    held.give();
    Verdict failure;
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
    if (failure.what != Verdict::none) {
      other.verdict = Verdict::made_by([&] { return failure; });
      self.verdict = std::move(failure);
    }
    signal();
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

  const std::uint32_t epoch_ = detail::fork_epoch();
  std::size_t working_ = 0;  // how many ranks have a part of the round to do
  Verdict round_failure_;
  Direct direct_;
};

}}}  // namespace fanout::v0::backend
