// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include <fanout/base/inline_array.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/host_collective.hpp>
#include <fanout/collective/rendezvous_rank.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The ranks of a HostRendezvous: their calls, which of them have left, and if any would wait forever.
class RendezvousRanks {
 public:
  explicit RendezvousRanks(std::size_t ranks) : ranks_(ranks), round_calls_(ranks) {}
  RendezvousRanks(const RendezvousRanks&) = delete;
  RendezvousRanks& operator=(const RendezvousRanks&) = delete;

  std::size_t size() const noexcept { return ranks_.size(); }

  /// Marks a rank as gone: its thread ends, with this exception if it is not null. Releases the ranks that need it. May
  /// be called more than once.
  void leave(std::size_t rank, const std::exception_ptr& why) noexcept {
    const Held held(mutex_);
    Rank& self = ranks_[rank];
    if (!self.gone) {
      self.culprit = rank;
      self.gone = true;
      ++gone_;
    }
    if (why != nullptr) self.retain(why);
    signal();
  }

  /// Releases all ranks. From now on all calls throw Error with this reason.
  void break_off(const char* why) noexcept {
    const Held held(mutex_);
    broken_ = why;
    signal();
  }

 protected:
  using Rank = RendezvousRank;
  using Verdict = RendezvousVerdict;
  using Progress = backend::Collective::Progress;

  /// Locks the mutex. It may be unlocked and locked again in between.
  class Held {
   public:
    explicit Held(ForkSafeMutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
      if (held_) mutex_.unlock();
    }
    void unlock() noexcept {
      held_ = false;
      mutex_.unlock();
    }
    void lock() noexcept {
      mutex_.lock();
      held_ = true;
    }

   private:
    ForkSafeMutex& mutex_;
    bool held_ = true;
  };

  /// An open recv of this rank whose send has been called, or null.
  backend::Collective* next_to_receive(std::size_t rank) noexcept {
    Rank& self = ranks_[rank];
    if (broken_ != nullptr || self.verdict.what != Verdict::none) return nullptr;
    for (std::size_t i = 0; i < self.count; ++i) {
      backend::Collective& call = self.calls[i];
      if (call.kind == backend::Collective::Kind::recv && call.progress == Progress::open &&
          sent(rank, call) != nullptr) {
        return &call;
      }
    }
    return nullptr;
  }
  backend::Collective* sent(std::size_t to, const backend::Collective& recv) noexcept {
    const Rank& other = ranks_[recv.root];
    return other.verdict.what == Verdict::none ? other.next_sent_to(to) : nullptr;
  }

  /// True if the rank's calls have run or never will. Then no other rank uses its arrays.
  bool may_go(const Rank& self) const noexcept {
    return round_ == 0 && self.moving == 0 && (self.left == 0 || self.verdict.what != Verdict::none);
  }

  /// Decides if this rank would wait forever. Returns true if a rank need not wait any more.
  bool judge(std::size_t rank) noexcept {
    Rank& self = ranks_[rank];
    if (round_ != 0 || self.moving != 0) return false;
    if (broken_ != nullptr) {
      self.verdict = Verdict::made_by([this] { return Verdict{.what = Verdict::broken, .text = broken_}; });
      return true;
    }
    if (const backend::Collective* call = abandoned(self)) {
      const std::size_t culprit = ranks_[needed_by(*call)].culprit;
      self.verdict = Verdict::made_by(
          [&] { return Verdict::of_rank_that_left(Rank::text_of(rank, *call), culprit, ranks_[culprit]); });
      return true;
    }
    if (inside_ + gone_ < size() || !all_wait()) return false;
    for (std::size_t i = 0; i < size(); ++i) round_calls_[i] = ranks_[i].first_open();
    judge_all(Fit::other_structure, round_calls_.data());
    return true;
  }

  /// The first open call of a rank that needs a rank that has left, or null.
  const backend::Collective* abandoned(const Rank& rank) const noexcept {
    for (std::size_t i = 0; i < rank.count && gone_ != 0; ++i) {
      const backend::Collective& call = rank.calls[i];
      if (call.progress == Progress::open && ranks_[needed_by(call)].gone) return &call;
    }
    return nullptr;
  }
  /// A rank that the call needs. If ranks have left and the call needs one of them, returns that one.
  std::size_t needed_by(const backend::Collective& call) const noexcept {
    return call.is_between_two() ? call.root : first_gone();
  }

  /// True if no waiting rank has anything to do.
  bool all_wait() noexcept {
    for (std::size_t i = 0; i < size(); ++i) {
      const Rank& rank = ranks_[i];
      if (rank.inside && (rank.left == 0 || rank.moving != 0 || rank.verdict.what != Verdict::none)) return false;
      if (rank.inside && (next_to_receive(i) != nullptr || abandoned(rank) != nullptr)) return false;
    }
    return true;
  }

  /// Tells all waiting ranks that their calls do not fit together. `calls[i]` is null for a rank that has left.
  void judge_all(Fit fit, const backend::Collective* const* calls) noexcept {
    const Verdict verdict = Verdict::made_by([&] {
      std::string text;
      bool between_two = false;
      for (std::size_t i = 0; i < size(); ++i) {
        between_two = between_two || (calls[i] != nullptr && calls[i]->is_between_two());
        if (i != 0) text += ", ";
        text += calls[i] != nullptr ? Rank::text_of(i, *calls[i]) : "rank " + std::to_string(i) + " has left";
      }
      if (!between_two) return Verdict::of(fit, text);
      return Verdict::of(
          fit, text,
          "send and recv wait for each other: ranks that exchange arrays call both in a group(), and each "
          "send needs a recv");
    });
    for (Rank& rank : ranks_) {
      if (rank.inside) rank.verdict = Verdict::made_by([&] { return verdict; });
    }
    signal();
  }

  /// A rank that left by its own exception, or any that left; size() if none has.
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
    held.unlock();
    if (until == Clock::never) {
      park(turn_, turn);
    } else {
      park_until(turn_, turn, until);
    }
    held.lock();
    --sleepers_;
  }
  void signal() noexcept {
    turn_.fetch_add(1, MemoryOrder::relaxed);
    if (sleepers_ != 0) unpark_all(turn_);
  }

  Atomic<std::uint32_t> turn_{0};  // incremented when a waiting rank may have something to do
  ForkSafeMutex mutex_;            // guards the members below
  std::size_t sleepers_ = 0;
  std::size_t inside_ = 0;
  std::size_t gone_ = 0;
  const char* broken_ = nullptr;
  std::size_t round_ = 0;  // number of collectives that all ranks run now; 0: no round
  InlineArray<Rank> ranks_;
  InlineArray<const backend::Collective*> round_calls_;
};

}}}  // namespace fanout::v0::detail
