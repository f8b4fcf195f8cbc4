// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/host_collective.hpp>
#include <fanout/collective/rendezvous_rank.hpp>
#include <fanout/collective/rendezvous_ranks.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// The rendezvous of threads, one per rank. Each thread brings its collectives and waits until they have run. Once all
/// ranks have called a collective, each of them runs a part of it. The receiver copies what was sent.
///
/// Calls that can never run throw instead of waiting forever: StructureMismatch or ShapeMismatch on all ranks whose
/// calls do not fit together, and CommunicatorAbandoned if a call needs a rank that has left.
class HostRendezvous : public detail::RendezvousRanks {
 public:
  explicit HostRendezvous(std::size_t ranks) : RendezvousRanks(ranks) {}

  /// Sets what runs `direct` calls. Must come before the first of these calls.
  void run_direct_by(TransportRanks* direct) noexcept { direct_ = direct; }

  /// Makes the calls of a rank together, and returns when they have run. The arrays must be in host memory. Throws the
  /// errors of the class, Error in the child of a fork, and Error if two threads call as one rank at once.
  void meet(std::size_t rank, Collective* calls, std::size_t count) {
    meet(rank, calls, count, detail::Clock::never, []() noexcept {});
  }

  /// The same, but calls `help()` once, without a lock, if it has waited for `patience` nanoseconds.
  template <class Help>
  void meet(std::size_t rank, Collective* calls, std::size_t count, detail::Clock::Time patience, const Help& help) {
    if (count == 0) return;
    if (epoch_ != detail::fork_epoch()) refuse_after_fork();
    // Before the other ranks count on this one: after that, nothing may throw.
    detail::InlineArray<const Collective*> calls_of_round(size());
    Held held(mutex_);
    Rank& self = ranks_[rank];
    if (self.inside) detail::refuse_second_thread(rank);
    self.enter(calls, count);
    ++inside_;
    if (self.next_send() != nullptr) signal();  // its receiver may sleep
    begin_round();
    detail::Clock::Time help_at = detail::Clock::never;
    if (patience != detail::Clock::never) help_at = 0;  // set at the first wait
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
          held.unlock();
          help();
          held.lock();
        }
      }
    }
  }

 private:
  /// Starts a round if all ranks have called. The round has the first calls that fit together.
  FANOUT_INLINE void begin_round() noexcept;

  FANOUT_INLINE bool all_have_next() const noexcept;
  /// Steps from one call of each rank to its next call that all ranks make.
  void step(const Collective** calls) const noexcept {
    for (std::size_t i = 0; i < size(); ++i) calls[i] = ranks_[i].next_of_all(calls[i]);
  }

  /// `calls` has room for one call per rank.
  FANOUT_INLINE void work(std::size_t rank, detail::InlineArray<const Collective*>& calls, Held& held) noexcept;

  FANOUT_INLINE void end_round() noexcept;

  /// Lets the devices run the calls of this round that they take, for all ranks at once. Returns their exception, if
  /// any.
  FANOUT_INLINE Verdict run_direct_round() noexcept;

  FANOUT_INLINE void receive(std::size_t rank, Collective& recv, Held& held) noexcept;

  [[noreturn]] static void refuse_after_fork() {
    throw Error(explain({.what = "a collective was called in the child of a fork",
                         .expected = "all ranks in one process",
                         .found = "ranks that stayed in the parent"}));
  }

  const std::uint32_t epoch_ = detail::fork_epoch();
  std::size_t working_ = 0;  // number of ranks that still work on the round
  Verdict round_failure_;
  TransportRanks* direct_ = nullptr;
};

}}}  // namespace fanout::v0::backend

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/collective/host_rendezvous.ipp>
#endif
