// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
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
  FANOUT_INLINE void leave(std::size_t rank, const std::exception_ptr& why) noexcept;

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
  FANOUT_INLINE backend::Collective* next_to_receive(std::size_t rank) noexcept;
  backend::Collective* sent(std::size_t to, const backend::Collective& recv) noexcept {
    const Rank& other = ranks_[recv.root];
    return other.verdict.what == Verdict::none ? other.next_sent_to(to) : nullptr;
  }

  /// True if the rank's calls have run or never will. Then no other rank uses its arrays.
  bool may_go(const Rank& self) const noexcept {
    return round_ == 0 && self.moving == 0 && (self.left == 0 || self.verdict.what != Verdict::none);
  }

  /// Decides if this rank would wait forever. Returns true if a rank need not wait any more.
  FANOUT_INLINE bool judge(std::size_t rank) noexcept;

  /// The first open call of a rank that needs a rank that has left, or null.
  FANOUT_INLINE const backend::Collective* abandoned(const Rank& rank) const noexcept;
  /// A rank that the call needs. If ranks have left and the call needs one of them, returns that one.
  std::size_t needed_by(const backend::Collective& call) const noexcept {
    return call.is_between_two() ? call.root : first_gone();
  }

  /// True if no waiting rank has anything to do.
  FANOUT_INLINE bool all_wait() noexcept;

  /// Tells all waiting ranks that their calls do not fit together. `calls[i]` is null for a rank that has left.
  FANOUT_INLINE void judge_all(Fit fit, const backend::Collective* const* calls) noexcept;

  /// A rank that left by its own exception, or any that left; size() if none has.
  FANOUT_INLINE std::size_t first_gone() const noexcept;

  FANOUT_INLINE void wait(Held& held, Clock::Time until) noexcept;
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

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/collective/rendezvous_ranks.ipp>
#endif
