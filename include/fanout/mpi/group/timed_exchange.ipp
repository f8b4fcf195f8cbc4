// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/timed_exchange.hpp>

#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

TimedExchange::TimedExchange(int rank, int size)
    : own_(static_cast<std::size_t>(rank)),
      names_(static_cast<std::size_t>(size)),
      peers_(names_.size()),
      arriving_(most_bytes(), '\0') {
  KeptMessages::of_process();  // made here, where memory may be missing
  vote_ = prepared();
  spare_ = prepared();
}

TimedExchange::Step::Step(TimedExchange& exchange, const RankWords& mine,
                          const backend::StepDeadline& deadline) noexcept
    : exchange_(exchange),
      number_(exchange.steps_++),
      give_up_at_(std::max(deadline.at, Clock::after(at_least))),
      patience_(deadline.patience) {
  for (Peer& peer : peers()) {
    peer.words = {};
    peer.failure.clear();
    peer.has_arrived = peer.has_voted = false;
  }
  own().words = mine;
  own().has_arrived = true;
}

TimedExchange::Step::~Step() {
  if (has_voted()) return;
  try {  // an exception: others must not wait for this rank
    own().words.failed |= RankWords::has_failed;
    vote_to_give_up();
  } catch (...) {  // MPI itself has failed
  }
}

void TimedExchange::Step::send_words() {
  if (!exchange_.spare_) exchange_.spare_ = exchange_.prepared();
  if (!exchange_.vote_) exchange_.vote_ = exchange_.prepared();
  KeptMessages::Prepared words = exchange_.prepared();
  begin(words, {.kind = Kind::words, .step = number_, .words = mine()});
  append(words, exchange_.names_[exchange_.own_]);
  words.bytes() += '\0';
  append(words, own().failure);
  send(words);
}

void TimedExchange::Step::receive() {
  for (std::size_t from = 0; from < size(); ++from) {
    while (from != exchange_.own_ && !peers()[from].has_voted && receive_from(from)) {
    }
  }
  if (has_voted()) return;
  if (!outcome_.given_up.empty() || (!all_have(&Peer::has_arrived) && Clock::now() >= give_up_at_)) {
    give_up();
  } else if (all_have(&Peer::has_arrived)) {
    own().has_voted = true;
    begin(exchange_.vote_, {.kind = Kind::ready, .step = number_, .words = mine()});
    send(exchange_.vote_);
  }
}

TimedOutcome TimedExchange::Step::outcome() && {
  for (const Peer& peer : peers()) {
    outcome_.words.push_back(peer.words);
    outcome_.failures.push_back(peer.failure);
  }
  return std::move(outcome_);
}

void TimedExchange::Step::give_up() {
  if (outcome_.given_up.empty()) {
    GivenUp& given_up = outcome_.given_up.emplace_back(GivenUp{.rank = exchange_.own_,
                                                               .patience = patience_,
                                                               .missing = {},
                                                               .failed = mine().failed,
                                                               .failure = own().failure.substr(0, longest)});
    for (std::size_t i = 0; i < size(); ++i) {
      if (!peers()[i].has_arrived) given_up.missing.push_back(i);
    }
  }
  vote_to_give_up();
}

void TimedExchange::Step::vote_to_give_up() {
  own().has_voted = true;
  KeptMessages::Prepared& vote = exchange_.vote_ ? exchange_.vote_ : exchange_.spare_;
  if (!vote) return;  // no memory at the last steps either: the others wait until their deadlines
  const GivenUp* const first = is_given_up() ? &outcome_.given_up.front() : nullptr;
  begin(vote, {.kind = Kind::gives_up,
               .step = number_,
               .words = mine(),
               .by = first == nullptr ? exchange_.own_ : first->rank,
               .patience = (first == nullptr ? patience_ : first->patience).nanoseconds(),
               .failed = first == nullptr ? mine().failed : first->failed});
  std::string& bytes = vote.bytes();
  const std::size_t bits = bytes.size();  // of the ranks that are missing
  bytes.append(exchange_.bytes_of_bits(), '\0');
  const auto mark = [&bytes, bits](std::size_t rank) {
    bytes[bits + rank / 8] = static_cast<char>(bytes[bits + rank / 8] | (1 << (rank % 8)));
  };
  if (first == nullptr) {
    append(vote, own().failure);
  } else {
    for (const std::size_t rank : first->missing) mark(rank);
    append(vote, first->failure);
  }
  send(vote);
}

void TimedExchange::Step::send(KeptMessages::Prepared& message) {
  for (std::size_t i = 1; i < size(); ++i) {
    const std::size_t to = (exchange_.own_ + i) % size();
    KeptMessages::of_process().send(message, static_cast<int>(to), exchange_.tag_, exchange_.over_);
  }
  message = {};
}

bool TimedExchange::Step::receive_from(std::size_t from) {
  const int source = static_cast<int>(from);
  int is_there = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(source, exchange_.tag_, exchange_.over_, &is_there, &status), "MPI_Iprobe");
  if (is_there == 0) return false;
  int length = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
  std::string& bytes = exchange_.arriving_;
  check_mpi(MPI_Recv(bytes.data(), length, MPI_BYTE, source, exchange_.tag_, exchange_.over_, MPI_STATUS_IGNORE),
            "MPI_Recv");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  note(from, header, std::string_view(bytes).substr(sizeof header, static_cast<std::size_t>(length) - sizeof header));
  return true;
}

void TimedExchange::Step::note(std::size_t from, const Header& header, std::string_view tail) {
  const std::size_t name = std::min(tail.find('\0'), tail.size());
  if (header.kind == Kind::words) keep(exchange_.names_[from], tail.substr(0, name));
  if (header.step != number_) return;  // of an earlier exchange, which ended without it
  Peer& peer = peers()[from];
  if (header.kind == Kind::words && name < tail.size()) keep(peer.failure, tail.substr(name + 1));
  peer.words = header.words;
  peer.has_arrived = true;
  peer.has_voted = header.kind != Kind::words;
  if (header.kind == Kind::gives_up) note_given_up(header, tail);
}

void TimedExchange::Step::keep(std::string& place, std::string_view text) noexcept {
  try {
    place = text;
  } catch (...) {
  }
}

void TimedExchange::Step::note_given_up(const Header& header, std::string_view tail) {
  const auto by = static_cast<std::size_t>(header.by);
  for (const GivenUp& known : outcome_.given_up) {
    if (known.rank == by) return;
  }
  GivenUp given_up{.rank = by,
                   .patience = std::chrono::nanoseconds(header.patience),
                   .missing = {},
                   .failed = header.failed,
                   .failure = std::string(tail.substr(exchange_.bytes_of_bits()))};
  for (std::size_t i = 0; i < size(); ++i) {
    if ((static_cast<unsigned char>(tail[i / 8]) >> (i % 8) & 1U) != 0) given_up.missing.push_back(i);
  }
  outcome_.given_up.push_back(std::move(given_up));
}

}}}  // namespace fanout::v0::detail
