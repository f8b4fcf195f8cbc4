// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/ranks_late.hpp>
#include <fanout/call/timeout.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/collective/rendezvous_rank.hpp>
#include <fanout/collective/step_deadline.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/rendezvous/launches.hpp>
#include <fanout/mpi/rendezvous/release_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_calls.hpp>
#include <fanout/mpi/rendezvous/rendezvous_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_note.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>
#include <fanout/mpi/rendezvous/rendezvous_state.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The rendezvous of the shards of one call over the mail of ranks. Each shard sends messages from its own thread.
/// Shards of one process send messages to each other, too. First a shard sends a note of its calls to each rank that
/// they need: 512 bytes. So calls that do not fit are named on all ranks, and arrays travel only if they fit. Calls
/// that the devices run then need a turn (LaunchOrder), for which one note more travels between each two processes.
/// Ranks that wait yield. At the deadline of the call they throw RanksLate. If the group is over, the destructor waits
/// for nobody.
class MpiRendezvous final : public backend::ProcessRendezvous {
 public:
  /// `shards`: of each process. `tags`: where it draws its own, as all processes do. Throws Error if MPI has too few
  /// tags. Borrows the group.
  FANOUT_INLINE MpiRendezvous(const RankGroup& group, const std::vector<std::size_t>& shards, RendezvousTags& tags,
                              const backend::StepDeadline& deadline = {});
  MpiRendezvous(const MpiRendezvous&) = delete;
  MpiRendezvous& operator=(const MpiRendezvous&) = delete;
  FANOUT_INLINE ~MpiRendezvous() override;

  /// Call this if not all processes have made theirs. Then the destructor waits for nobody.
  void cancel() noexcept { state_.reset(); }

  void wait_until(detail::Clock::Time deadline) noexcept override { deadline_.at = deadline; }
  bool allows_any_thread() const noexcept override { return group_.mail().allows_any_thread(); }

  FANOUT_INLINE void run_direct_by(backend::TransportRanks& direct) override;

  std::exception_ptr release() const noexcept override {
    const std::uint64_t word = released_.load();
    if (word == 0) return nullptr;
    return RankGroup::exception_of([word] { verdict_of_release(ReleaseMail::reason_of(word)).raise(); });
  }

  void meet(std::size_t rank, backend::Collective* calls, std::size_t count, const Help& help) override {
    if (count != 0) group_.guarded([&] { meet_others(rank, calls, count, help); });
  }

  FANOUT_INLINE void leave(std::size_t rank, const std::exception_ptr& why) noexcept override;
  FANOUT_INLINE void leave_all() noexcept override;

  void break_off(const char* why) noexcept override { broken_.store(why); }

 private:
  static constexpr Clock::Time patience = 1'000'000;  // nanoseconds, as ShardRendezvous has

  FANOUT_INLINE static void note_lateness(const std::exception_ptr& why, RendezvousNote& note);

  /// One thread at a time makes calls of a rank.
  class InUse {
   public:
    InUse(RendezvousState::Own& own, std::size_t rank) : own_(own) {
      if (own_.inside.exchange(true)) refuse_second_thread(rank);
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    ~InUse() { own_.inside = false; }

   private:
    RendezvousState::Own& own_;
  };

  FANOUT_INLINE void meet_others(std::size_t rank, backend::Collective* calls, std::size_t count, const Help& help);

  /// Returns RanksLate if the deadline is over, and calls wait for ranks of other processes.
  FANOUT_INLINE std::exception_ptr wait(RendezvousState::Own& own, RendezvousCalls& mine, const Help& help);

  /// Ends calls that wait for ranks of other processes, and returns why. Null if there are none.
  FANOUT_INLINE std::exception_ptr give_up(RendezvousCalls& mine) noexcept;
  FANOUT_INLINE std::exception_ptr late_ranks(RendezvousCalls& mine);

  static std::exception_ptr lateness(const std::string& text, const std::set<std::size_t>& late) {
    SmallVector<std::size_t> missing;
    for (const std::size_t process : late) missing.push_back(process);
    return std::make_exception_ptr(RanksLate(text, std::move(missing)));
  }

  /// What another rank threw, which has left.
  static std::exception_ptr lateness_of(const RendezvousNote& note) {
    return lateness(note.text, std::set<std::size_t>(note.late_ones, note.late_ones + note.late));
  }

  FANOUT_INLINE void release_after_failure(std::size_t rank, RendezvousCalls& mine) noexcept;

  FANOUT_INLINE static RendezvousVerdict verdict_of_release(const ReleaseMail::Reason& why) noexcept;

  /// On the thread of the transport that looks for failures.
  FANOUT_INLINE void look() noexcept;

  /// Tells the other processes if devices of this one have failed, and hears it of them. The caller may use MPI.
  FANOUT_INLINE void look_for_releases();

  /// Releases the devices of all processes. The caller may use MPI. Throws after it has released those of this process.
  FANOUT_INLINE void release_all(const ReleaseMail::Reason& why);

  FANOUT_INLINE void wait_for_all();

  /// MPI may still write into the messages: they are never freed.
  FANOUT_INLINE void abandon() noexcept;

  const RankGroup& group_;
  const RankGroup::ShardsMeet meet_{};
  backend::StepDeadline deadline_;
  std::unique_ptr<RendezvousState> state_;  // null if it was abandoned
  Launches launches_{state_->places, state_->here};
  bool has_left_ = false;  // see leave_all()
  std::atomic<const char*> broken_{nullptr};
  std::atomic<std::uint64_t> released_{0};  // the word of ReleaseMail, if the devices were released
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/mpi_rendezvous.ipp>
#endif
