// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/rendezvous_mail.hpp>

#include <algorithm>
#include <new>

namespace fanout { inline namespace v0 { namespace detail {

RendezvousMail::RendezvousMail(MPI_Comm over, const RendezvousPlaces& places, std::size_t rank)
    : over_(over),
      places_(places),
      rank_(rank),
      boxes_(places.size()),
      receives_(places.size(), MPI_REQUEST_NULL),
      arrived_(places.size()),
      farewells_(places.size(), MPI_REQUEST_NULL) {}

void RendezvousMail::send(const Note& note, std::size_t to) {
  Sent& sent = sent_.emplace_back(Sent{note, MPI_REQUEST_NULL});
  check_mpi(MPI_Isend(&sent.note, sizeof(Note), MPI_BYTE, static_cast<int>(places_.process(to)), tag(rank_, to), over_,
                      &sent.request),
            "MPI_Isend");
}

void RendezvousMail::leave(const Note& note) {
  farewell_ = note;
  has_left_ = true;
  for (std::size_t to = 0; to < boxes_.size(); ++to) {
    check_mpi(MPI_Isend(&farewell_, sizeof(Note), MPI_BYTE, static_cast<int>(places_.process(to)), tag(rank_, to),
                        over_, &farewells_[to]),
              "MPI_Isend");
  }
}

void RendezvousMail::poll() {
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

const RendezvousMail::Note* RendezvousMail::next(std::size_t from, Note::Kind kind) const noexcept {
  for (const Note& note : boxes_[from].notes) {
    if (note.kind == kind) return &note;
  }
  return nullptr;
}

RendezvousMail::Note RendezvousMail::take(std::size_t from, Note::Kind kind) {
  std::deque<Note>& notes = boxes_[from].notes;
  const auto found = std::find_if(notes.begin(), notes.end(), [kind](const Note& note) { return note.kind == kind; });
  const Note note = *found;
  notes.erase(found);
  return note;
}

std::optional<std::uint64_t> RendezvousMail::take_turn(std::size_t from, Note::Kind of) {
  std::deque<Turn>& turns = boxes_[from].turns;
  const auto found = std::find_if(turns.begin(), turns.end(), [of](const Turn& turn) { return turn.of == of; });
  if (found == turns.end()) return std::nullopt;
  const std::uint64_t turn = found->turn;
  turns.erase(found);
  return turn;
}

std::optional<std::size_t> RendezvousMail::first_kept_waiting() const noexcept {
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    if (left(i) != nullptr && left(i)->late != 0) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> RendezvousMail::first_left() const noexcept {
  std::optional<std::size_t> found;
  for (std::size_t i = boxes_.size(); i > 0; --i) {
    const Note* const note = left(i - 1);
    if (note != nullptr && (!found || note->text[0] != '\0')) found = i - 1;
  }
  return found;
}

void RendezvousMail::take_in(std::size_t from) {
  Box& box = boxes_[from];
  if (box.arriving.kind == Note::Kind::left) {
    box.left = box.arriving;
    ++left_;
    return;  // its last note
  }
  if (!has_left_) keep(box);
  receive(from);
}

void RendezvousMail::keep(Box& box) noexcept {
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

}}}  // namespace fanout::v0::detail
