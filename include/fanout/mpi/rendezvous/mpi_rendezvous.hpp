// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <utility>
#include <vector>

#include <fanout/collective/collective.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/collective/rendezvous_rank.hpp>
#include <fanout/mpi/group/growing_pause.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/rendezvous/rendezvous_calls.hpp>
#include <fanout/mpi/rendezvous/rendezvous_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_note.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The rendezvous of the shards of one call over MPI. Each shard sends messages from its own thread. Shards of one
/// process send messages to each other, too. First a shard sends a note of its calls to each rank that they need: 512 bytes. So calls that do not fit are
/// named on all ranks, and arrays travel only if they fit. Ranks that wait yield.
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
    }
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
    RendezvousCalls mine(group_.get(), places_, own.mail, rank, calls, count);
    {
      const RankGroup::Use use(group_);
      own.mail.open();
      mine.announce();
    }
    const GrowingPause pause;
    Clock::Time help_at = Clock::now() + patience;
    for (;;) {
      {
        const RankGroup::Use use(group_);
        own.mail.poll();
        mine.advance();
      }
      if (mine.have_ended()) break;
      mine.combine();
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
    // Notes that nobody has taken would be mistaken for those of the next calls.
    if (mine.left_notes()) own.broken = mine.verdict();
    mine.verdict().raise();
  }

  void wait_for_all() {
    for (const std::size_t rank : here_) leave(rank, nullptr);
    const GrowingPause pause;
    for (bool done = false; !done; pause(Clock::never)) {
      const RankGroup::Use use(group_);
      done = true;
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
};

}}}  // namespace fanout::v0::detail
