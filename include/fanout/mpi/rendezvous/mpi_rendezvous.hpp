// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/collective/rendezvous_rank.hpp>
#include <fanout/mpi/group/growing_pause.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/rendezvous/launches.hpp>
#include <fanout/mpi/rendezvous/release_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_calls.hpp>
#include <fanout/mpi/rendezvous/rendezvous_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_note.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The rendezvous of the shards of one call over MPI. Each shard sends messages from its own thread. Shards of one
/// process send messages to each other, too. First a shard sends a note of its calls to each rank that they need: 512
/// bytes. So calls that do not fit are named on all ranks, and arrays travel only if they fit. Calls that the devices run
/// then need a turn (LaunchOrder), for which one note more travels between each two processes. Ranks that wait yield.
class MpiRendezvous final : public backend::ProcessRendezvous {
 public:
  /// `shards`: of each process. `serial`: the number of the call, the same on all processes. Throws Error if MPI has too
  /// few tags. Borrows the group.
  MpiRendezvous(const RankGroup& group, const std::vector<std::size_t>& shards, std::size_t serial)
      : group_(group),
        places_(shards, serial, group.largest_tag()),
        here_(places_.ranks_of(static_cast<std::size_t>(group.rank()))) {
    for (const std::size_t rank : here_) own_.emplace_back(group.get(), places_, rank);
  }
  MpiRendezvous(const MpiRendezvous&) = delete;
  MpiRendezvous& operator=(const MpiRendezvous&) = delete;
  ~MpiRendezvous() override {
    try {
      wait_for_all();
    } catch (...) {  // MPI failed, and may still write into these
      static_cast<void>(new std::deque<Own>(std::move(own_)));
      static_cast<void>(releases_.release());
      if (direct() != nullptr) direct()->abort();
    }
    if (direct() != nullptr) direct()->settle();  // so that it calls look() no more
  }

  void run_direct_by(backend::TransportRanks& direct) override {
    ProcessRendezvous::run_direct_by(direct);
    {
      const RankGroup::Use use(group_);
      releases_ = std::make_unique<ReleaseMail>(group_.get(), places_, static_cast<std::size_t>(group_.rank()));
    }
    direct.look_also({.at = [](void* own) noexcept { static_cast<MpiRendezvous*>(own)->look(); }, .of = this});
  }

  std::exception_ptr release() const noexcept override {
    const std::size_t word = released_.load();
    if (word == 0) return nullptr;
    return RankGroup::exception_of([word] { verdict_of_release(word - 1).raise(); });
  }

  void meet(std::size_t rank, backend::Collective* calls, std::size_t count, const Help& help) override {
    if (count != 0) group_.guarded([&] { meet_others(rank, calls, count, help); });
  }

  void leave(std::size_t rank, const std::exception_ptr& why) noexcept override {
    Own& own = own_[rank - here_.first];
    if (!group_.thread_level().allows_this_thread() || own.gone.exchange(true))
      return;  // the destructor may be allowed
    try {
      RendezvousRank left;
      left.culprit = rank;
      if (why != nullptr) left.retain(why);
      RendezvousNote note;
      note.culprit = left.culprit;
      note.says(left.why);
      const RankGroup::Use use(group_);
      own.mail.open();
      for (std::size_t other = 0; other < places_.size(); ++other) own.mail.send(note, other);
    } catch (...) {  // MPI failed; the next call of it says so
    }
  }

  void break_off(const char* why) noexcept override { broken_.store(why); }

 private:
  static constexpr Clock::Time patience = 1'000'000;  // nanoseconds, as ShardRendezvous has

  /// A rank of this process.
  struct Own {
    Own(MPI_Comm over, const RendezvousPlaces& places, std::size_t rank) : mail(over, places, rank) {}

    RendezvousMail mail;
    RendezvousVerdict broken;
    std::atomic<bool> gone{false};
  };

  void meet_others(std::size_t rank, backend::Collective* calls, std::size_t count, const Help& help) {
    Own& own = own_[rank - here_.first];
    own.broken.raise();
    RendezvousCalls mine(group_.get(), places_, own.mail, launches_, rank, calls, count);
    try {
      wait(rank, mine, help);
    } catch (...) {  // MPI failed, or lost a rank
      if (direct() != nullptr) release_after_failure(rank, mine);
      throw;
    }
    // Notes that nobody has taken would be mistaken for those of the next calls.
    if (mine.left_notes()) own.broken = mine.verdict();
    mine.verdict().raise();
  }

  void wait(std::size_t rank, RendezvousCalls& mine, const Help& help) {
    Own& own = own_[rank - here_.first];
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
        mine.advance();
        if (mine.deserter()) release_all(*mine.deserter());
        if (look_at != Clock::never && Clock::now() >= look_at) {
          look_for_releases();
          look_at = Clock::now() + patience;
        }
        if (const std::size_t word = released_.load()) mine.release(verdict_of_release(word - 1));
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
      pause(help_at);
    }
  }

  void release_after_failure(std::size_t rank, RendezvousCalls& mine) noexcept {
    const std::unique_lock use = group_.lock();  // without the checks of Use, which may throw
    try {
      release_all(rank);
    } catch (...) {  // the others hear of the same failure
    }
    mine.release(verdict_of_release(rank));
  }

  static RendezvousVerdict verdict_of_release(std::size_t culprit) noexcept {
    return RendezvousVerdict::made_by([culprit] {
      return RendezvousVerdict{.what = RendezvousVerdict::abandoned,
                               .culprit = culprit,
                               .text = explain({.what = "collectives between devices of several processes were aborted",
                                                .found = "rank " + std::to_string(culprit) + " failed"})};
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
    if (const std::uint64_t heard = releases_->poll(); heard != 0) return release_all(heard - 1);
    for (const std::size_t rank : here_) {
      if (direct()->failure(rank - here_.first) != nullptr) return release_all(rank);
    }
  }

  /// Releases the devices of all processes, since this rank has failed. The caller may use MPI. Throws after it has
  /// released those of this process.
  void release_all(std::size_t culprit) {
    std::size_t nobody = 0;
    released_.compare_exchange_strong(nobody, culprit + 1);
    direct()->abort();
    releases_->send(culprit + 1);
  }

  void wait_for_all() {
    for (const std::size_t rank : here_) leave(rank, nullptr);
    if (releases_ != nullptr) {
      direct()->settle();  // finds failures that it has not seen yet
      const RankGroup::Use use(group_);
      look_for_releases();
      releases_->send(0);
    }
    const GrowingPause pause;
    for (bool done = false; !done; pause(Clock::never)) {
      const RankGroup::Use use(group_);
      done = true;
      if (releases_ != nullptr) {
        if (const std::uint64_t heard = releases_->poll(); heard != 0) release_all(heard - 1);
        done = releases_->is_done();
      }
      for (Own& own : own_) {
        own.mail.poll();
        done = done && own.mail.is_done();
      }
    }
  }

  const RankGroup& group_;
  const RendezvousPlaces places_;
  const RowRange here_;  // the ranks of this process
  std::deque<Own> own_;
  std::atomic<const char*> broken_{nullptr};
  Launches launches_{places_, here_};
  std::unique_ptr<ReleaseMail> releases_;  // null unless devices run collectives
  std::atomic<std::size_t> released_{0};   // 1 plus the rank that failed, if the devices were released
};

}}}  // namespace fanout::v0::detail
