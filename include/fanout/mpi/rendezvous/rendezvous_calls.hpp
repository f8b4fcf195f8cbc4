// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/host_collective.hpp>
#include <fanout/collective/rendezvous_rank.hpp>
#include <fanout/mpi/group/message_blocks.hpp>
#include <fanout/mpi/group/messages.hpp>
#include <fanout/mpi/group/rank_mail.hpp>
#include <fanout/mpi/rendezvous/collective_exchange.hpp>
#include <fanout/mpi/rendezvous/launches.hpp>
#include <fanout/mpi/rendezvous/rendezvous_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_note.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The calls of one MpiRendezvous::meet(): its collectives, which run together, and each send and recv. A call waits
/// until all ranks that it needs have sent a note of the same call. Only then do its arrays travel, or do the devices
/// start. The caller of each function but work() may use MPI. Borrows all.
class RendezvousCalls {
 public:
  using Note = RendezvousNote;

  FANOUT_INLINE RendezvousCalls(const RankMail& over, const RendezvousPlaces& places, RendezvousMail& mail,
                                Launches& launches, std::size_t rank, backend::Collective* calls, std::size_t count);

  /// Sends the notes of all calls.
  FANOUT_INLINE void announce();

  /// Starts and ends what can be. Does not wait.
  FANOUT_INLINE void advance();

  /// Computes what has arrived, and starts devices. Uses no MPI.
  FANOUT_INLINE void work(backend::TransportRanks* direct);

  /// The processes of ranks for which calls wait. They have not left.
  FANOUT_INLINE std::set<std::size_t> awaited() const;

  /// The note of a rank that has left since processes were late, if a call would wait for it. Else null.
  const Note* kept_waiting() const noexcept {
    return verdict_.what == RendezvousVerdict::none || !kept_waiting_ ? nullptr : mail_.left(*kept_waiting_);
  }

  /// `rank 0 called barrier`: one that waits.
  FANOUT_INLINE std::string text_of_waiting() const;

  /// A rank that would take part in a launch has left. Its devices, or those of others, may wait for it.
  std::optional<std::size_t> deserter() const noexcept { return deserter_; }

  /// Ends the calls that the devices have not started: they were released. Call this, too, if advance() has thrown.
  /// `late`: some ranks were not waited for. Does nothing then until the note of a rank that gave up has come.
  FANOUT_INLINE void release(const RendezvousVerdict& why, bool late);

  /// Ends the calls that wait.
  void refuse(RendezvousVerdict verdict) noexcept {
    if (verdict_.what == RendezvousVerdict::none) verdict_ = std::move(verdict);
  }

  /// True if nobody uses the arrays any more.
  FANOUT_INLINE bool have_ended() const noexcept;
  /// True if notes of these calls may still be at other ranks.
  FANOUT_INLINE bool left_notes() const noexcept;
  const RendezvousVerdict& verdict() const noexcept { return verdict_; }

 private:
  using Kind = RendezvousNote::Kind;
  enum class State : unsigned char { waits, moves, moved, combined, moves_back, ends, done };

  /// What travels to another rank and from it.
  struct Transfer {
    MessageBlocks to;
    MessageBlocks from;
  };

  struct Call {
    Call(const RankMail& over, Kind kind, const std::vector<backend::Collective*>& made)
        : note(Note::of(kind, made)), other(made.front()->root), messages(over) {
      for (backend::Collective* const each : made) (each->direct ? direct : calls).push_back(each);
    }
    bool is_moving() const noexcept {
      return state == State::moves || state == State::moves_back || state == State::ends;
    }

    std::vector<backend::Collective*> calls;   // through host memory
    std::vector<backend::Collective*> direct;  // by the devices
    Note note;
    std::size_t other;                           // of a send or recv: the other rank
    State state = State::waits;                  // of those through host memory
    std::shared_ptr<Launch> launch;              // of the others, from when all notes are here until it is over
    std::optional<CollectiveExchange> exchange;  // of collectives
    std::vector<Transfer> first;                 // with each other rank: see start()
    std::vector<Transfer> second;
    Messages messages;
  };

  /// Calls `f(rank)` for each other rank that the call needs.
  template <class F>
  void each_needed(const Call& call, const F& f) const {
    if (call.note.kind != Kind::collectives) return f(call.other);
    for (std::size_t other = 0; other < places_.size(); ++other) {
      if (other != rank_) f(other);
    }
  }

  /// The kind of note that a call waits for.
  static Kind wanted(const Call& call) noexcept {
    if (call.note.kind == Kind::send) return Kind::recv;
    return call.note.kind == Kind::recv ? Kind::send : Kind::collectives;
  }

  static std::string text_of(std::size_t rank, const Note& note) {
    return "rank " + std::to_string(rank) + " called " + note.text;
  }

  FANOUT_INLINE void match_or_refuse(Call& call);

  /// Starts a call if all ranks that it needs have sent their notes, or refuses it if these do not fit. Allocates all
  /// before arrays travel: then the others may read memory of this rank, and it must not leave.
  FANOUT_INLINE void match(Call& call);

  FANOUT_INLINE void advance_launch(Call& call);

  /// Ends a call whose arrays travel if a rank has left by an exception: that one may not have sent its own. But waits
  /// for the others, which may still read the arrays of this rank.
  FANOUT_INLINE void look_for_throwers(Call& call);

  FANOUT_INLINE void look_for_deserters(const Call& call);

  std::size_t before(std::size_t step) const noexcept { return (rank_ + places_.size() - step) % places_.size(); }
  std::size_t after(std::size_t step) const noexcept { return (rank_ + step) % places_.size(); }

  /// Allocates what the arrays of a call need to travel.
  FANOUT_INLINE void prepare(Call& call);

  FANOUT_INLINE void start_first(Call& call);

  void start_second(Call& call) {
    start(call, call.second);
    call.state = State::moves_back;
  }

  FANOUT_INLINE void start(Call& call, const std::vector<Transfer>& transfers);

  /// Refuses calls that would wait forever: for a rank that has left, or for one that waits for this rank with other
  /// calls.
  FANOUT_INLINE void judge();

  void judge_left(const Call& call, std::size_t other) {
    if (mail_.left(other)->late != 0) kept_waiting_ = other;
    if (call.note.kind == Kind::collectives && !kept_waiting_) kept_waiting_ = mail_.first_kept_waiting();
    refuse(verdict_of_left(call, other));
  }

  FANOUT_INLINE RendezvousVerdict verdict_of_left(const Call& call, std::size_t other) const noexcept;

  /// True if a call that waits can go on with a note of this rank.
  FANOUT_INLINE bool any_matches(std::size_t other) const;

  FANOUT_INLINE void judge_mutual(const Call& call, std::size_t other);

  const std::uint64_t process_;  // see LaunchOrder
  const RendezvousPlaces& places_;
  RendezvousMail& mail_;
  Launches& launches_;
  std::size_t rank_;
  std::deque<Call> calls_;
  RendezvousVerdict verdict_;
  std::optional<std::size_t> deserter_;
  std::optional<std::size_t> kept_waiting_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/rendezvous_calls.ipp>
#endif
