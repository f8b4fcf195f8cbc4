// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/mpi_rendezvous.hpp>

#include <algorithm>
#include <mutex>

#include <fanout/mpi/group/growing_pause.hpp>

namespace fanout { inline namespace v0 { namespace detail {

MpiRendezvous::MpiRendezvous(const RankGroup& group, const std::vector<std::size_t>& shards, RendezvousTags& tags,
                             const backend::StepDeadline& deadline)
    : group_(group),
      deadline_(deadline),
      state_(std::make_unique<RendezvousState>(group.mail(), RendezvousPlaces(shards, tags, group.mail().largest_tag()),
                                               static_cast<std::size_t>(group.rank()))) {}

MpiRendezvous::~MpiRendezvous() {
  leave_all();
  try {
    wait_for_all();
  } catch (...) {  // MPI failed
    abandon();
  }
  if (direct() != nullptr) direct()->close();
}

void MpiRendezvous::run_direct_by(backend::TransportRanks& direct) {
  ProcessRendezvous::run_direct_by(direct);
  {
    const RankGroup::Use use(group_);
    state_->releases =
        std::make_unique<ReleaseMail>(group_.mail(), state_->places, static_cast<std::size_t>(group_.rank()));
  }
  direct.look_also({.at = [](void* own) noexcept { static_cast<MpiRendezvous*>(own)->look(); }, .of = this});
}

void MpiRendezvous::leave(std::size_t rank, const std::exception_ptr& why) noexcept {
  RendezvousState::Own& own = state_->of(rank);
  if (!group_.mail().allows_this_thread() || own.gone.exchange(true)) return;  // the destructor may be allowed
  try {  // allocates nothing: the others wait for the note
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

void MpiRendezvous::leave_all() noexcept {
  if (state_ == nullptr || has_left_) return;
  has_left_ = true;
  try {
    for (const std::size_t rank : state_->here) leave(rank, nullptr);
    if (state_->releases == nullptr) return;
    direct()->settle();  // finds failures that it has not seen yet
    const RankGroup::Use use(group_);
    look_for_releases();
    state_->releases->send(0);
  } catch (...) {  // MPI failed
    abandon();
  }
}

void MpiRendezvous::note_lateness(const std::exception_ptr& why, RendezvousNote& note) {
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

void MpiRendezvous::meet_others(std::size_t rank, backend::Collective* calls, std::size_t count, const Help& help) {
  RendezvousState::Own& own = state_->of(rank);
  const InUse inside(own, rank);
  if (own.failure != nullptr) std::rethrow_exception(own.failure);
  RendezvousCalls mine(group_.mail(), state_->places, own.mail, launches_, rank, calls, count);
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

std::exception_ptr MpiRendezvous::wait(RendezvousState::Own& own, RendezvousCalls& mine, const Help& help) {
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
    pause(late == nullptr ? Clock::earlier(help_at, deadline_.at) : help_at);
  }
  return late;
}

std::exception_ptr MpiRendezvous::give_up(RendezvousCalls& mine) noexcept {
  try {
    return late_ranks(mine);
  } catch (...) {  // no memory for the names
    mine.refuse({.what = RendezvousVerdict::no_memory});
    return std::current_exception();
  }
}

std::exception_ptr MpiRendezvous::late_ranks(RendezvousCalls& mine) {
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

void MpiRendezvous::release_after_failure(std::size_t rank, RendezvousCalls& mine) noexcept {
  const std::unique_lock use = group_.lock();  // without the checks of Use, which may throw
  const ReleaseMail::Reason why{.culprit = rank, .late = false};
  try {
    release_all(why);
  } catch (...) {  // the others hear of the same failure
  }
  mine.release(verdict_of_release(why), false);
}

RendezvousVerdict MpiRendezvous::verdict_of_release(const ReleaseMail::Reason& why) noexcept {
  return RendezvousVerdict::made_by([&why] {
    const std::string found =
        "rank " + std::to_string(why.culprit) + (why.late ? " waits no more for ranks that are late" : " failed");
    return RendezvousVerdict{
        .what = RendezvousVerdict::abandoned,
        .culprit = why.culprit,
        .text = explain({.what = "collectives between devices of several processes were aborted", .found = found})};
  });
}

void MpiRendezvous::look() noexcept {
  if (!group_.mail().allows_this_thread()) return;
  try {
    const std::unique_lock use = group_.lock_if_free();  // another exchange may take long
    if (use) look_for_releases();
  } catch (...) {  // MPI failed, or lost a rank
    direct()->abort();
  }
}

void MpiRendezvous::look_for_releases() {
  if (const std::uint64_t heard = state_->releases->poll(); heard != 0) {
    return release_all(ReleaseMail::reason_of(heard));
  }
  for (const std::size_t rank : state_->here) {
    if (direct()->failure(rank - state_->here.first) != nullptr) return release_all({.culprit = rank, .late = false});
  }
}

void MpiRendezvous::release_all(const ReleaseMail::Reason& why) {
  std::uint64_t nothing = 0;
  released_.compare_exchange_strong(nothing, ReleaseMail::word_of(why));
  direct()->abort();
  state_->releases->send(ReleaseMail::word_of(why));
}

void MpiRendezvous::wait_for_all() {
  if (state_ == nullptr) return;
  if (group_.is_over()) {
    group_.mail().keep();
    return abandon();
  }
  for (const GrowingPause pause;; pause(Clock::never)) {
    const RankGroup::Use use(group_);
    if (!state_->poll()) continue;
    if (state_->releases == nullptr) return;
    const std::uint64_t heard = state_->releases->poll();
    if (heard != 0) release_all(ReleaseMail::reason_of(heard));
    return;
  }
}

void MpiRendezvous::abandon() noexcept {
  if (direct() != nullptr) {
    direct()->abort();
    direct()->settle();  // now it calls look() no more
  }
  static_cast<void>(state_.release());
}

}}}  // namespace fanout::v0::detail
