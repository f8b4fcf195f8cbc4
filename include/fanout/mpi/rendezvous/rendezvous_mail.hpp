// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <new>
#include <optional>
#include <vector>

#include <mpi.h>

#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/rendezvous/rendezvous_note.hpp>
#include <fanout/mpi/rendezvous/rendezvous_places.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The notes between one rank of an MpiRendezvous and all ranks, also itself. The caller of each function may use MPI.
/// Borrows the communicator and the places.
///
/// A rank without memory can leave: all other functions than the constructor and send() allocate nothing, or go on
/// without. If poll() has no memory for a note, has_lost_notes() is true, and the rank can only leave.
class RendezvousMail {
 public:
  using Note = RendezvousNote;

  RendezvousMail(MPI_Comm over, const RendezvousPlaces& places, std::size_t rank)
      : over_(over),
        places_(places),
        rank_(rank),
        boxes_(places.size()),
        receives_(places.size(), MPI_REQUEST_NULL),
        arrived_(places.size()),
        farewells_(places.size(), MPI_REQUEST_NULL) {}

  /// Begins to receive. A second call does nothing.
  void open() {
    if (is_open_) return;
    is_open_ = true;
    for (std::size_t from = 0; from < boxes_.size(); ++from) receive(from);
  }

  void send(const Note& note, std::size_t to) {
    Sent& sent = sent_.emplace_back(Sent{note, MPI_REQUEST_NULL});
    check_mpi(MPI_Isend(&sent.note, sizeof(Note), MPI_BYTE, static_cast<int>(places_.process(to)), tag(rank_, to),
                        over_, &sent.request),
              "MPI_Isend");
  }

  /// Sends all ranks the note that this one has left, which is its last one. From now on, drops the notes of others
  /// that have not left.
  void leave(const Note& note) {
    farewell_ = note;
    has_left_ = true;
    for (std::size_t to = 0; to < boxes_.size(); ++to) {
      check_mpi(MPI_Isend(&farewell_, sizeof(Note), MPI_BYTE, static_cast<int>(places_.process(to)), tag(rank_, to),
                          over_, &farewells_[to]),
                "MPI_Isend");
    }
  }

  /// Takes in what has arrived. Does not wait.
  void poll() {
    if (is_open_ && left_ < boxes_.size()) {
      int count = 0;
      check_mpi(MPI_Testsome(static_cast<int>(receives_.size()), receives_.data(), &count, arrived_.data(),
                             MPI_STATUSES_IGNORE),
                "MPI_Testsome");
      for (int i = 0; i < count; ++i) take_in(static_cast<std::size_t>(arrived_[static_cast<std::size_t>(i)]));
    }
    while (!sent_.empty()) {
      int done = 0;
      check_mpi(MPI_Test(&sent_.front().request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done == 0) break;
      sent_.pop_front();
    }
    if (!has_left_ || knows_left_) return;
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(farewells_.size()), farewells_.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    knows_left_ = done != 0;
  }

  /// True if there was no memory for notes that arrived before this rank has left.
  bool has_lost_notes() const noexcept { return has_lost_notes_; }

  /// The oldest note of this kind from a rank, or null.
  const Note* next(std::size_t from, Note::Kind kind) const noexcept {
    for (const Note& note : boxes_[from].notes) {
      if (note.kind == kind) return &note;
    }
    return nullptr;
  }
  /// Removes it.
  Note take(std::size_t from, Note::Kind kind) {
    std::deque<Note>& notes = boxes_[from].notes;
    const auto found = std::find_if(notes.begin(), notes.end(), [kind](const Note& note) { return note.kind == kind; });
    const Note note = *found;
    notes.erase(found);
    return note;
  }

  /// The turn that a rank proposes for its next call of this kind, which this removes. None if it has not come.
  std::optional<std::uint64_t> take_turn(std::size_t from, Note::Kind of) {
    std::deque<Turn>& turns = boxes_[from].turns;
    const auto found = std::find_if(turns.begin(), turns.end(), [of](const Turn& turn) { return turn.of == of; });
    if (found == turns.end()) return std::nullopt;
    const std::uint64_t turn = found->turn;
    turns.erase(found);
    return turn;
  }

  /// True if the rank waits for notes that do not come: it has sent all notes of its calls, and some are still here.
  bool waits(std::size_t rank) const noexcept { return boxes_[rank].missing == 0 && !boxes_[rank].notes.empty(); }

  /// Why a rank has left; nullptr if it has not.
  const Note* left(std::size_t rank) const noexcept { return boxes_[rank].left ? &*boxes_[rank].left : nullptr; }
  /// The first rank that has left since others were late; none if none has.
  std::optional<std::size_t> first_kept_waiting() const noexcept {
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      if (left(i) != nullptr && left(i)->late != 0) return i;
    }
    return std::nullopt;
  }
  /// A rank that has left by its own exception, or any that has left; none if none has.
  std::optional<std::size_t> first_left() const noexcept {
    std::optional<std::size_t> found;
    for (std::size_t i = boxes_.size(); i > 0; --i) {
      const Note* const note = left(i - 1);
      if (note != nullptr && (!found || note->text[0] != '\0')) found = i - 1;
    }
    return found;
  }

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
  };
  struct Sent {
    Note note;
    MPI_Request request;
  };

  int tag(std::size_t from, std::size_t to) const noexcept {
    return places_.tag(RendezvousPlaces::Stream::notes, from, to);
  }

  void receive(std::size_t from) {
    check_mpi(MPI_Irecv(&boxes_[from].arriving, sizeof(Note), MPI_BYTE, static_cast<int>(places_.process(from)),
                        tag(from, rank_), over_, &receives_[from]),
              "MPI_Irecv");
  }

  void take_in(std::size_t from) {
    Box& box = boxes_[from];
    if (box.arriving.kind == Note::Kind::left) {
      box.left = box.arriving;
      ++left_;
      return;  // its last note
    }
    if (!has_left_) keep(box);
    receive(from);
  }

  void keep(Box& box) noexcept {
    try {
      if (box.arriving.kind == Note::Kind::turn) {
        box.turns.push_back({box.arriving.turn_of, box.arriving.turn});
      } else {
        box.missing = (box.missing == 0 ? box.arriving.notes : box.missing) - 1;
        box.notes.push_back(box.arriving);
      }
    } catch (const std::bad_alloc&) {
      has_lost_notes_ = true;
    }
  }

  MPI_Comm over_;
  const RendezvousPlaces& places_;
  std::size_t rank_;
  std::vector<Box> boxes_;  // by sender
  std::vector<MPI_Request> receives_;
  std::vector<int> arrived_;
  std::deque<Sent> sent_;  // a note must stay where it is until it has been sent
  Note farewell_;
  std::vector<MPI_Request> farewells_;  // one for each rank
  std::size_t left_ = 0;                // number of ranks that have left
  bool is_open_ = false;
  bool has_left_ = false;    // this rank
  bool knows_left_ = false;  // farewells_ have been sent
  bool has_lost_notes_ = false;
};

}}}  // namespace fanout::v0::detail
