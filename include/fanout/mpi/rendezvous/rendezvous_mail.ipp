// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/rendezvous_mail.hpp>

#include <algorithm>
#include <new>

namespace fanout { inline namespace v0 { namespace detail {

RendezvousMail::RendezvousMail(const RankMail& mail, const RendezvousPlaces& places, std::size_t rank)
    : mail_(mail), places_(places), rank_(rank), boxes_(places.size()) {}

void RendezvousMail::send(const Note& note, std::size_t to) {
  Sent& sent = sent_.emplace_back(Sent{note, {}});
  sent.ticket = post(sent.note, to);
}

void RendezvousMail::leave(const Note& note) {
  farewell_ = note;
  has_left_ = true;
  for (std::size_t to = 0; to < boxes_.size(); ++to) boxes_[to].farewell = post(farewell_, to);
}

void RendezvousMail::poll() {
  for (std::size_t from = 0; is_open_ && from < boxes_.size(); ++from) {
    if (!boxes_[from].left && mail_.test(boxes_[from].receives)) take_in(from);
  }
  while (!sent_.empty() && mail_.test(sent_.front().ticket)) sent_.pop_front();
  if (!has_left_ || knows_left_) return;
  for (Box& box : boxes_) {
    if (!mail_.test(box.farewell)) return;
  }
  knows_left_ = true;
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
