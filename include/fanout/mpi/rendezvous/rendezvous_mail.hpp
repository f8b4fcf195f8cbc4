// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/mpi/group/rank_mail.hpp>
#include <fanout/mpi/rendezvous/rendezvous_note.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The notes between one rank of an MpiRendezvous and all ranks, also itself. The caller of each function may use MPI.
/// Borrows the mail of all ranks and the places.
///
/// A rank without memory can leave: all other functions than the constructor and send() allocate nothing, or go on
/// without. If poll() has no memory for a note, has_lost_notes() is true, and the rank can only leave.
class RendezvousMail {
 public:
  using Note = RendezvousNote;

  FANOUT_INLINE RendezvousMail(const RankMail& mail, const RendezvousPlaces& places, std::size_t rank);

  /// Begins to receive. A second call does nothing.
  void open() {
    if (is_open_) return;
    is_open_ = true;
    for (std::size_t from = 0; from < boxes_.size(); ++from) receive(from);
  }

  FANOUT_INLINE void send(const Note& note, std::size_t to);

  /// Sends all ranks the note that this one has left, which is its last one. From now on, drops the notes of others
  /// that have not left.
  FANOUT_INLINE void leave(const Note& note);

  /// Takes in what has arrived. Does not wait.
  FANOUT_INLINE void poll();

  /// True if there was no memory for notes that arrived before this rank has left.
  bool has_lost_notes() const noexcept { return has_lost_notes_; }

  /// The oldest note of this kind from a rank, or null.
  FANOUT_INLINE const Note* next(std::size_t from, Note::Kind kind) const noexcept;
  /// Removes it.
  FANOUT_INLINE Note take(std::size_t from, Note::Kind kind);

  /// The turn that a rank proposes for its next call of this kind, which this removes. None if it has not come.
  FANOUT_INLINE std::optional<std::uint64_t> take_turn(std::size_t from, Note::Kind of);

  /// True if the rank waits for notes that do not come: it has sent all notes of its calls, and some are still here.
  bool waits(std::size_t rank) const noexcept { return boxes_[rank].missing == 0 && !boxes_[rank].notes.empty(); }

  /// Why a rank has left; nullptr if it has not.
  const Note* left(std::size_t rank) const noexcept { return boxes_[rank].left ? &*boxes_[rank].left : nullptr; }
  /// The first rank that has left since others were late; none if none has.
  FANOUT_INLINE std::optional<std::size_t> first_kept_waiting() const noexcept;
  /// A rank that has left by its own exception, or any that has left; none if none has.
  FANOUT_INLINE std::optional<std::size_t> first_left() const noexcept;

  /// True if all ranks have left, and know that this one has.
  bool is_done() const noexcept { return left_ == boxes_.size() && sent_.empty() && knows_left_; }

 private:
  struct Turn {
    Note::Kind of;
    std::uint64_t turn;
  };
  struct Box {
    Note arriving;
    std::deque<Note> notes;
    std::deque<Turn> turns;
    std::size_t missing = 0;  // notes that belong to the latest one
    std::optional<Note> left;
    RankMail::Ticket receives;
    RankMail::Ticket farewell;  // to this rank
  };
  struct Sent {
    Note note;
    RankMail::Ticket ticket;
  };

  int tag(std::size_t from, std::size_t to) const noexcept {
    return places_.tag(RendezvousPlaces::Stream::notes, from, to);
  }

  void receive(std::size_t from) {
    boxes_[from].receives =
        mail_.receive({&boxes_[from].arriving, sizeof(Note)}, {.rank = places_.process(from), .tag = tag(from, rank_)});
  }
  RankMail::Ticket post(const Note& note, std::size_t to) {
    return mail_.send({&note, sizeof(Note)}, {.rank = places_.process(to), .tag = tag(rank_, to)});
  }

  FANOUT_INLINE void take_in(std::size_t from);

  FANOUT_INLINE void keep(Box& box) noexcept;

  const RankMail& mail_;
  const RendezvousPlaces& places_;
  std::size_t rank_;
  std::vector<Box> boxes_;  // by sender
  std::deque<Sent> sent_;   // a note must stay where it is until it has been sent
  Note farewell_;
  std::size_t left_ = 0;  // number of ranks that have left
  bool is_open_ = false;
  bool has_left_ = false;    // this rank
  bool knows_left_ = false;  // the last notes have been sent
  bool has_lost_notes_ = false;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/rendezvous_mail.ipp>
#endif
