// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/rendezvous_calls.hpp>

#include <algorithm>
#include <cstdint>
#include <new>
#include <thread>

#include <fanout/mpi/rendezvous/launch_order.hpp>

namespace fanout { inline namespace v0 { namespace detail {

RendezvousCalls::RendezvousCalls(const RankMail& over, const RendezvousPlaces& places, RendezvousMail& mail,
                                 Launches& launches, std::size_t rank, backend::Collective* calls, std::size_t count)
    : process_(over.process()), places_(places), mail_(mail), launches_(launches), rank_(rank) {
  std::vector<backend::Collective*> of_all;
  for (std::size_t i = 0; i < count; ++i) {
    if (calls[i].is_between_two()) {
      const Kind kind = calls[i].kind == backend::Collective::Kind::send ? Kind::send : Kind::recv;
      calls_.emplace_back(over, kind, std::vector{&calls[i]});
    } else {
      of_all.push_back(&calls[i]);
    }
  }
  if (!of_all.empty()) calls_.emplace_front(over, Kind::collectives, std::move(of_all));
}

void RendezvousCalls::announce() {
  std::vector<std::size_t> notes(places_.size());
  for (const Call& call : calls_) each_needed(call, [&notes](std::size_t other) { ++notes[other]; });
  for (Call& call : calls_) {
    each_needed(call, [&](std::size_t other) {
      call.note.notes = notes[other];
      mail_.send(call.note, other);
    });
  }
}

void RendezvousCalls::advance() {
  for (Call& call : calls_) {
    if (call.state == State::waits && verdict_.what == RendezvousVerdict::none) match_or_refuse(call);
    if (call.state == State::moves && call.messages.test()) call.state = State::moved;
    if (call.is_moving()) look_for_throwers(call);
    if (call.state == State::moved && !call.exchange) call.state = State::done;
    if (call.state == State::combined) start_second(call);
    if ((call.state == State::moves_back || call.state == State::ends) && call.messages.test())
      call.state = State::done;
    if (call.launch != nullptr) advance_launch(call);
  }
  if (verdict_.what == RendezvousVerdict::none) judge();
}

void RendezvousCalls::work(backend::TransportRanks* direct) {
  for (Call& call : calls_) {
    if (call.launch != nullptr && call.launch->leader == rank_ && call.launch->runs()) call.launch->run(*direct);
    if (call.state != State::moved) continue;
    call.exchange->combine();
    call.state = State::combined;
  }
}

std::set<std::size_t> RendezvousCalls::awaited() const {
  std::set<std::size_t> processes;
  for (const Call& call : calls_) {
    if (call.state != State::waits) continue;
    each_needed(call, [&](std::size_t other) {
      if (mail_.next(other, wanted(call)) == nullptr && mail_.left(other) == nullptr)
        processes.insert(places_.process(other));
    });
  }
  return processes;
}

std::string RendezvousCalls::text_of_waiting() const {
  for (const Call& call : calls_) {
    if (call.state == State::waits) return text_of(rank_, call.note);
  }
  return {};
}

void RendezvousCalls::release(const RendezvousVerdict& why, bool late) {
  if (late && !kept_waiting_) kept_waiting_ = mail_.first_kept_waiting();
  if (late && !kept_waiting_) return;
  bool any = false;
  for (Call& call : calls_) {
    any = any || (!call.direct.empty() && call.state == State::waits) || call.launch != nullptr;
    if (call.launch == nullptr) continue;
    while (call.launch->leader != rank_ && call.launch->runs()) std::this_thread::yield();  // it uses these calls
    if (!call.launch->is_over()) call.launch->end(why);
    call.launch.reset();
  }
  if (any) refuse(why);
}

bool RendezvousCalls::have_ended() const noexcept {
  for (const Call& call : calls_) {
    if (call.launch != nullptr) return false;
    if (call.state == State::waits ? verdict_.what == RendezvousVerdict::none : call.state != State::done) return false;
  }
  return true;
}

bool RendezvousCalls::left_notes() const noexcept {
  for (const Call& call : calls_) {
    if (call.state == State::waits) return true;
  }
  return false;
}

void RendezvousCalls::match_or_refuse(Call& call) {
  try {
    match(call);
  } catch (const std::bad_alloc&) {
    refuse({.what = RendezvousVerdict::no_memory});
  } catch (const OutOfMemory&) {
    refuse({.what = RendezvousVerdict::no_memory});
  }
}

void RendezvousCalls::match(Call& call) {
  bool all_here = true;
  std::size_t needed = 0;
  each_needed(call, [&](std::size_t other) {
    all_here = all_here && mail_.next(other, wanted(call)) != nullptr;
    ++needed;
  });
  if (!all_here) return;
  Fit fit = Fit::fits;
  std::vector<std::pair<std::size_t, Note>> notes;
  notes.reserve(needed);
  if (!call.calls.empty()) prepare(call);
  each_needed(call, [&](std::size_t other) {
    notes.emplace_back(other, mail_.take(other, wanted(call)));
    if (fit == Fit::fits) fit = call.note.fits(notes.back().second);
  });
  if (fit != Fit::fits) {
    call.state = State::done;
    return refuse(RendezvousVerdict::made_by([&] {
      std::string all;
      const auto add = [&all](const std::string& text) { all += (all.empty() ? "" : ", ") + text; };
      std::size_t next = 0;
      for (; next < notes.size() && notes[next].first < rank_; ++next)
        add(text_of(notes[next].first, notes[next].second));
      add(text_of(rank_, call.note));
      for (; next < notes.size(); ++next) add(text_of(notes[next].first, notes[next].second));
      return RendezvousVerdict::of(fit, all);
    }));
  }
  if (!call.direct.empty()) call.launch = launches_.join(rank_, call.direct);
  call.state = call.calls.empty() ? State::done : State::moves;
  if (!call.calls.empty()) start_first(call);
}

void RendezvousCalls::advance_launch(Call& call) {
  Launch& launch = *call.launch;
  if (launch.state.load() == Launch::State::gathers && launch.missing.empty() && launch.leader == rank_) {
    launch.place.emplace(LaunchOrder::of_process(process_));
    Note turn{.kind = Kind::turn, .turn = launch.place->turn(), .turn_of = call.note.kind};
    for (const std::size_t other : launch.others) mail_.send(turn, other);
    launch.state.store(Launch::State::proposed);
  }
  if (launch.state.load() == Launch::State::proposed && launch.leader == rank_) {
    std::erase_if(launch.others, [&](std::size_t other) {
      const std::optional<std::uint64_t> turn = mail_.take_turn(other, launch.said_by(other));
      if (turn) launch.place->hear(*turn);
      return turn.has_value();
    });
    if (launch.others.empty() && launch.place->is_next()) launch.state.store(Launch::State::runs);
  }
  if (launch.is_over()) {
    refuse(launch.failure);
    call.launch.reset();
  } else if (!launch.runs()) {
    look_for_deserters(call);
  }
}

void RendezvousCalls::look_for_throwers(Call& call) {
  using Stream = RendezvousPlaces::Stream;
  const Stream stream = call.note.kind == Kind::collectives ? Stream::collectives : Stream::between_two;
  each_needed(call, [&](std::size_t other) {
    const Note* const left = mail_.left(other);
    if (left == nullptr || (left->text[0] == '\0' && left->culprit == other)) return;
    const std::size_t process = places_.process(other);
    const bool sent = call.messages.give_up(process, places_.tag(stream, rank_, other));
    if (!call.messages.give_up(process, places_.tag(stream, other, rank_)) && !sent) return;
    call.state = State::ends;
    judge_left(call, other);
  });
}

void RendezvousCalls::look_for_deserters(const Call& call) {
  const Launch& launch = *call.launch;
  const auto look = [&](std::size_t other) {
    if (other == rank_ || mail_.left(other) == nullptr) return;
    if (!deserter_) deserter_ = other;
    if (mail_.left(other)->late != 0) kept_waiting_ = other;
  };
  std::for_each(launch.missing.begin(), launch.missing.end(), look);
  if (launch.leader == rank_) std::for_each(launch.others.begin(), launch.others.end(), look);
  look(launch.leader);
  if (deserter_) refuse(verdict_of_left(call, *deserter_));
}

void RendezvousCalls::prepare(Call& call) {
  call.first.resize(1);
  call.messages.reserve(2 * places_.size());
  if (call.note.kind != Kind::collectives) {
    const backend::Collective& own = *call.calls[0];
    if (call.note.kind == Kind::send) call.first[0].to.add(own.from, own.bytes());
    if (call.note.kind == Kind::recv) call.first[0].from.add(own.to, own.bytes());
    return;
  }
  const CollectiveExchange& exchange = call.exchange.emplace(call.calls, rank_, places_.size());
  call.first.resize(places_.size());
  call.second.resize(places_.size());
  for (std::size_t step = 1; step < places_.size(); ++step) {
    call.first[step] = {.to = exchange.first_to(after(step)), .from = exchange.first_from(before(step))};
    call.second[step] = {.to = exchange.second_to(after(step)), .from = exchange.second_from(before(step))};
  }
}

void RendezvousCalls::start_first(Call& call) {
  if (call.note.kind == Kind::collectives) return start(call, call.first);
  using Stream = RendezvousPlaces::Stream;
  const std::size_t process = places_.process(call.other);
  call.messages.send(call.first[0].to, process, places_.tag(Stream::between_two, rank_, call.other));
  call.messages.receive(call.first[0].from, process, places_.tag(Stream::between_two, call.other, rank_));
}

void RendezvousCalls::start(Call& call, const std::vector<Transfer>& transfers) {
  constexpr auto stream = RendezvousPlaces::Stream::collectives;
  for (std::size_t step = 1; step < places_.size(); ++step) {  // not all to the same rank at the same time
    const std::size_t from = before(step);
    const std::size_t to = after(step);
    call.messages.receive(transfers[step].from, places_.process(from), places_.tag(stream, from, rank_));
    call.messages.send(transfers[step].to, places_.process(to), places_.tag(stream, rank_, to));
  }
}

void RendezvousCalls::judge() {
  for (const Call& call : calls_) {
    if (call.state != State::waits) continue;
    each_needed(call, [&](std::size_t other) {
      if (mail_.next(other, wanted(call)) != nullptr || verdict_.what != RendezvousVerdict::none) return;
      if (mail_.left(other) != nullptr) return judge_left(call, other);
      if (mail_.waits(other) && !any_matches(other)) judge_mutual(call, other);
    });
  }
}

RendezvousVerdict RendezvousCalls::verdict_of_left(const Call& call, std::size_t other) const noexcept {
  const std::size_t gone = call.note.kind == Kind::collectives ? mail_.first_left().value_or(other) : other;
  std::size_t culprit = static_cast<std::size_t>(mail_.left(gone)->culprit);
  if (mail_.left(culprit) == nullptr) culprit = gone;  // its note is still on its way
  return RendezvousVerdict::made_by([&] {
    RendezvousRank left;
    const std::string why = mail_.left(culprit)->text;
    why.copy(left.why, sizeof(left.why) - 1);
    return RendezvousVerdict::of_rank_that_left(text_of(rank_, call.note), culprit, left);
  });
}

bool RendezvousCalls::any_matches(std::size_t other) const {
  bool any = false;
  for (const Call& call : calls_) {
    if (call.state != State::waits) continue;
    each_needed(call, [&](std::size_t needed) {
      any = any || (needed == other && mail_.next(other, wanted(call)) != nullptr);
    });
  }
  return any;
}

void RendezvousCalls::judge_mutual(const Call& call, std::size_t other) {
  refuse(RendezvousVerdict::made_by([&] {
    const Note* theirs = nullptr;
    for (const Kind kind : {Kind::collectives, Kind::send, Kind::recv}) {
      if (theirs == nullptr) theirs = mail_.next(other, kind);
    }
    return RendezvousVerdict::of(
        Fit::other_structure, text_of(rank_, call.note) + ", " + text_of(other, *theirs),
        "call the same ones on all ranks, in the same order and groups; ranks that exchange arrays by send and recv "
        "call both in a group()");
  }));
}

}}}  // namespace fanout::v0::detail
