// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/call/ranks_late.hpp>
#include <fanout/call/timeout.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/collective/rendezvous_rank.hpp>
#include <fanout/collective/step_deadline.hpp>
#include <fanout/mpi/group/growing_pause.hpp>
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

/// The rendezvous of the shards of one call over MPI. Each shard sends messages from its own thread. Shards of one
/// process send messages to each other, too. First a shard sends a note of its calls to each rank that they need: 512
/// bytes. So calls that do not fit are named on all ranks, and arrays travel only if they fit. Calls that the devices
/// run then need a turn (LaunchOrder), for which one note more travels between each two processes. Ranks that wait
/// yield. At the deadline of the call they throw RanksLate, and the destructor waits no more.
class MpiRendezvous final : public backend::ProcessRendezvous {
 public:
  /// `shards`: of each process. `tags`: where it draws its own, as all processes do. `abandoned` gets the messages if
  /// ranks are late at the deadline. Throws Error if MPI has too few tags. Borrows the group.
  MpiRendezvous(const RankGroup& group, AbandonedRendezvous& abandoned, const std::vector<std::size_t>& shards,
                RendezvousTags& tags, const backend::StepDeadline& deadline = {})
      : group_(group),
        abandoned_(abandoned),
        deadline_(deadline),
        state_(std::make_unique<RendezvousState>(group.get(), RendezvousPlaces(shards, tags, group.largest_tag()),
                                                 static_cast<std::size_t>(group.rank()))) {}
  MpiRendezvous(const MpiRendezvous&) = delete;
  MpiRendezvous& operator=(const MpiRendezvous&) = delete;
  ~MpiRendezvous() override {
    if (state_ == nullptr) return;
    try {
      wait_for_all();
    } catch (...) {  // MPI failed, and may still write into these
      if (direct() != nullptr) {
        direct()->abort();
        direct()->settle();  // now it calls look() no more
      }
      static_cast<void>(state_.release());
    }
    if (direct() != nullptr) direct()->close();
  }

  /// Call this if not all processes have made theirs. Then the destructor waits for nobody.
  void cancel() noexcept { state_.reset(); }

  void wait_until(detail::Clock::Time deadline) noexcept override { deadline_.at = deadline; }
  bool allows_any_thread() const noexcept override { return group_.thread_level().allows_any_thread(); }

  void run_direct_by(backend::TransportRanks& direct) override {
    ProcessRendezvous::run_direct_by(direct);
    {
      const RankGroup::Use use(group_);
      state_->releases =
          std::make_unique<ReleaseMail>(group_.get(), state_->places, static_cast<std::size_t>(group_.rank()));
    }
    direct.look_also({.at = [](void* own) noexcept { static_cast<MpiRendezvous*>(own)->look(); }, .of = this});
  }

  std::exception_ptr release() const noexcept override {
    const std::uint64_t word = released_.load();
    if (word == 0) return nullptr;
    return RankGroup::exception_of([word] { verdict_of_release(ReleaseMail::reason_of(word)).raise(); });
  }

  void meet(std::size_t rank, backend::Collective* calls, std::size_t count, const Help& help) override {
    if (count != 0) group_.guarded([&] { meet_others(rank, calls, count, help); });
  }

  void leave(std::size_t rank, const std::exception_ptr& why) noexcept override {
    RendezvousState::Own& own = state_->of(rank);
    if (!group_.thread_level().allows_this_thread() || own.gone.exchange(true))
      return;  // the destructor may be allowed
    try {      // allocates nothing: the others wait for the note
      const RankGroup::Use use(group_);
      // A shard may have caught what ended its calls. Others may wait for the arrays of these.
      const std::exception_ptr& failure = why == nullptr ? own.failure : why;
      RendezvousRank left;
      left.culprit = rank;
      if (failure != nullptr) left.retain(failure);
      RendezvousNote note;
      note.culprit = left.culprit;
      note.says(left.why);
      if (failure != nullptr) note_lateness(failure, note);
      own.mail.open();
      own.mail.leave(note);
    } catch (...) {  // MPI failed; the next call of it says so
    }
  }

  void break_off(const char* why) noexcept override { broken_.store(why); }

 private:
  static constexpr Clock::Time patience = 1'000'000;                  // nanoseconds, as ShardRendezvous has
  static constexpr Duration at_least = std::chrono::milliseconds(2);  // to see what others have sent before

  static void note_lateness(const std::exception_ptr& why, RendezvousNote& note) {
    try {
      std::rethrow_exception(why);
    } catch (const RanksLate& late) {
      for (const std::size_t process : late.missing()) {
        if (note.late < std::size(note.late_ones)) note.late_ones[note.late++] = static_cast<std::uint32_t>(process);
      }
      note.says(late.what());
    } catch (...) {
    }
  }

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

  void meet_others(std::size_t rank, backend::Collective* calls, std::size_t count, const Help& help) {
    RendezvousState::Own& own = state_->of(rank);
    const InUse inside(own, rank);
    if (own.failure != nullptr) std::rethrow_exception(own.failure);
    RendezvousCalls mine(group_.get(), state_->places, own.mail, launches_, rank, calls, count);
    std::exception_ptr late;
    try {
      late = wait(own, mine, help);
    } catch (...) {  // MPI failed, or lost a rank; or there was no memory for the notes
      own.failure = std::current_exception();
      if (direct() != nullptr) release_after_failure(rank, mine);
      throw;
    }
    const std::exception_ptr failure = RankGroup::exception_of([&] {
      if (late == nullptr && mine.kept_waiting() != nullptr) late = lateness_of(*mine.kept_waiting());
      if (late != nullptr) std::rethrow_exception(late);
      mine.verdict().raise();
    });
    if (failure == nullptr) return;
    // Notes that nobody has taken would be mistaken for those of the next calls.
    if (late != nullptr || mine.left_notes()) own.failure = failure;
    std::rethrow_exception(failure);
  }

  /// Returns RanksLate if the deadline is over, and calls wait for ranks of other processes.
  std::exception_ptr wait(RendezvousState::Own& own, RendezvousCalls& mine, const Help& help) {
    std::exception_ptr late;
    {
      const RankGroup::Use use(group_);
      own.mail.open();
      mine.announce();
    }
    const GrowingPause pause;
    Clock::Time help_at = Clock::now() + patience;
    Clock::Time look_at = direct() == nullptr ? Clock::never : Clock::now();
    for (;;) {
      {
        const RankGroup::Use use(group_);
        own.mail.poll();
        if (own.mail.has_lost_notes()) mine.refuse({.what = RendezvousVerdict::no_memory});
        mine.advance();
        if (mine.deserter()) release_all({.culprit = *mine.deserter(), .late = mine.kept_waiting() != nullptr});
        if (look_at != Clock::never && Clock::now() >= look_at) {
          look_for_releases();
          look_at = Clock::now() + patience;
        }
        if (const std::uint64_t word = released_.load()) {
          const ReleaseMail::Reason why = ReleaseMail::reason_of(word);
          mine.release(verdict_of_release(why), why.late);
        }
      }
      if (mine.have_ended()) break;
      mine.work(direct());
      if (const char* const why = broken_.load()) {
        mine.refuse(RendezvousVerdict::made_by(
            [why] { return RendezvousVerdict{.what = RendezvousVerdict::broken, .text = why}; }));
      }
      if (help_at != Clock::never && Clock::now() >= help_at) {
        help_at = Clock::never;
        help.start(help.of);
      }
      if (late == nullptr && deadline_.exists() && Clock::now() >= deadline_.at) late = give_up(mine);
      pause(late == nullptr ? earlier(help_at, deadline_.at) : help_at);
    }
    return late;
  }

  /// Ends calls that wait for ranks of other processes, and returns why. Null if there are none.
  std::exception_ptr give_up(RendezvousCalls& mine) noexcept {
    try {
      return late_ranks(mine);
    } catch (...) {  // no memory for the names
      mine.refuse({.what = RendezvousVerdict::no_memory});
      return std::current_exception();
    }
  }
  std::exception_ptr late_ranks(RendezvousCalls& mine) {
    std::set<std::size_t> late = mine.awaited();
    late.erase(static_cast<std::size_t>(group_.rank()));
    if (late.empty() || mine.verdict().what != RendezvousVerdict::none) return nullptr;
    std::string names;
    {
      const RankGroup::Use use(group_);  // another thread may learn names meanwhile
      for (const std::size_t process : late) names += (names.empty() ? "" : ", ") + group_.name_of(process);
    }
    const std::string text = explain(
        {.what = names + " had not come to a collective at the deadline of " + Timeout::to_text(deadline_.patience),
         .where = mine.text_of_waiting()});
    mine.refuse(
        RendezvousVerdict::made_by([&] { return RendezvousVerdict{.what = RendezvousVerdict::broken, .text = text}; }));
    return lateness(text, late);
  }

  static std::exception_ptr lateness(const std::string& text, const std::set<std::size_t>& late) {
    SmallVector<std::size_t> missing;
    for (const std::size_t process : late) missing.push_back(process);
    return std::make_exception_ptr(RanksLate(text, std::move(missing)));
  }

  /// What another rank threw, which has left.
  static std::exception_ptr lateness_of(const RendezvousNote& note) {
    return lateness(note.text, std::set<std::size_t>(note.late_ones, note.late_ones + note.late));
  }

  void release_after_failure(std::size_t rank, RendezvousCalls& mine) noexcept {
    const std::unique_lock use = group_.lock();  // without the checks of Use, which may throw
    const ReleaseMail::Reason why{.culprit = rank, .late = false};
    try {
      release_all(why);
    } catch (...) {  // the others hear of the same failure
    }
    mine.release(verdict_of_release(why), false);
  }

  static RendezvousVerdict verdict_of_release(const ReleaseMail::Reason& why) noexcept {
    return RendezvousVerdict::made_by([&why] {
      const std::string found =
          "rank " + std::to_string(why.culprit) + (why.late ? " waits no more for ranks that are late" : " failed");
      return RendezvousVerdict{
          .what = RendezvousVerdict::abandoned,
          .culprit = why.culprit,
          .text = explain({.what = "collectives between devices of several processes were aborted", .found = found})};
    });
  }

  /// On the thread of the transport that looks for failures.
  void look() noexcept {
    if (!group_.thread_level().allows_this_thread()) return;
    try {
      const std::unique_lock use = group_.lock_if_free();  // another exchange may take long
      if (use) look_for_releases();
    } catch (...) {  // MPI failed, or lost a rank
      direct()->abort();
    }
  }

  /// Tells the other processes if devices of this one have failed, and hears it of them. The caller may use MPI.
  void look_for_releases() {
    if (const std::uint64_t heard = state_->releases->poll(); heard != 0) {
      return release_all(ReleaseMail::reason_of(heard));
    }
    for (const std::size_t rank : state_->here) {
      if (direct()->failure(rank - state_->here.first) != nullptr) return release_all({.culprit = rank, .late = false});
    }
  }

  /// Releases the devices of all processes. The caller may use MPI. Throws after it has released those of this process.
  void release_all(const ReleaseMail::Reason& why) {
    std::uint64_t nothing = 0;
    released_.compare_exchange_strong(nothing, ReleaseMail::word_of(why));
    direct()->abort();
    state_->releases->send(ReleaseMail::word_of(why));
  }

  void wait_for_all() {
    for (const std::size_t rank : state_->here) leave(rank, nullptr);
    if (state_->releases != nullptr) {
      direct()->settle();  // finds failures that it has not seen yet
      const RankGroup::Use use(group_);
      look_for_releases();
      state_->releases->send(0);
    }
    const Clock::Time end = std::max(deadline_.at, Clock::after(at_least));
    for (const GrowingPause pause;; pause(end)) {
      const RankGroup::Use use(group_);
      if (state_->poll()) break;
      if (deadline_.exists() && Clock::now() >= end) return abandon();
    }
    if (state_->releases != nullptr) {
      if (const std::uint64_t heard = state_->releases->poll(); heard != 0) release_all(ReleaseMail::reason_of(heard));
    }
  }

  /// Ranks are late, and this process waits no more. The caller may use MPI.
  void abandon() {
    if (state_->releases != nullptr) release_all({.culprit = state_->here.first, .late = true});
    if (direct() != nullptr) direct()->settle();
    abandoned_.add(std::move(state_));
  }

  const RankGroup& group_;
  const RankGroup::ShardsMeet meet_{};
  AbandonedRendezvous& abandoned_;
  backend::StepDeadline deadline_;
  std::unique_ptr<RendezvousState> state_;  // null in the end, if it was abandoned
  Launches launches_{state_->places, state_->here};
  std::atomic<const char*> broken_{nullptr};
  std::atomic<std::uint64_t> released_{0};  // the word of ReleaseMail, if the devices were released
};

}}}  // namespace fanout::v0::detail
