// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/timed_exchange.hpp>

#include <cstring>
#include <type_traits>

namespace fanout { inline namespace v0 { namespace detail {

void TimedExchange::prepare() {
  static_assert(std::is_trivially_copyable_v<Header>);
  peers_.resize(mail_.size());
  memory_ = std::make_unique<Memory>();
  memory_->words.reserve(sizeof(Header) + longest);
  memory_->vote.reserve(sizeof(Header) + bytes_of_bits());
  memory_->sent.resize(2 * (peers_.size() - 1));
  memory_->arriving.resize(peers_.size());
  for (Arriving& each : memory_->arriving) each.bytes.resize(sizeof(Header) + std::max(longest, bytes_of_bits()));
  missing_.resize(bytes_of_bits());
  for (Peer& peer : peers_) peer.failure.reserve(longest);
}

GivenUp TimedExchange::given_up() const {
  GivenUp how{.by = by_.value_or(own_), .patience = patience_, .missing = {}, .failures = {}};
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if ((static_cast<unsigned char>(missing_[i / 8]) >> (i % 8) & 1U) != 0) how.missing.push_back(i);
    how.failures.push_back(peers_[i].failure);
  }
  return how;
}

void TimedExchange::send_words(const RankWords& mine, std::string_view failure) {
  for (Peer& peer : peers_) {
    peer.words = {};
    peer.failure.clear();
    peer.has_arrived = peer.has_voted = false;
  }
  own().words = mine;
  own().failure.assign(failure, 0, longest);
  own().has_arrived = true;
  for (std::size_t from = 0; from < peers_.size(); ++from) {
    if (from != own_) open(from);
  }
  send(memory_->words, {.kind = Kind::words, .words = mine}, own().failure, memory_->sent.data());
}

void TimedExchange::open(std::size_t from) {
  Arriving& arriving = memory_->arriving[from];
  arriving.ticket = mail_.receive({arriving.bytes.data(), arriving.bytes.size()},
                                  {.rank = from, .tag = 0, .channel = RankMail::Channel::deadlines});
}

void TimedExchange::receive() {
  for (std::size_t from = 0; from < peers_.size(); ++from) {
    Arriving& arriving = memory_->arriving[from];
    while (from != own_ && !peers_[from].has_voted && mail_.test(arriving.ticket)) {
      Header header;
      std::memcpy(&header, arriving.bytes.data(), sizeof header);
      note(from, header, std::string_view(arriving.bytes).substr(sizeof header, header.length));
      if (!peers_[from].has_voted) open(from);  // after its vote, words of the next exchange follow
    }
  }
}

void TimedExchange::note(std::size_t from, const Header& header, std::string_view tail) {
  Peer& peer = peers_[from];
  if (header.kind == Kind::words) {
    peer.words = header.words;
    peer.failure = tail;
    peer.has_arrived = true;
    return;
  }
  peer.has_voted = true;
  if (header.kind == Kind::ready) return;
  if (!by_) by_ = static_cast<std::size_t>(header.by);
  if (*by_ != from) return;
  patience_ = std::chrono::nanoseconds(header.patience);
  missing_ = tail;
}

void TimedExchange::vote(Duration patience, bool is_late) {
  Header header{.kind = Kind::gives_up};
  if (by_) {
    header.by = *by_;
  } else if (all_have(&Peer::has_arrived)) {
    header.kind = Kind::ready;
  } else if (is_late) {
    by_ = own_;
    patience_ = patience;
    header.by = own_;
    header.patience = patience.nanoseconds();
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (!peers_[i].has_arrived) missing_[i / 8] = static_cast<char>(missing_[i / 8] | (1 << (i % 8)));
    }
  } else {
    return;
  }
  own().has_voted = true;
  send(memory_->vote, header, by_ == own_ ? std::string_view(missing_) : std::string_view(),
       memory_->sent.data() + (peers_.size() - 1));
}

bool TimedExchange::has_ended() {
  if (by_) return own().has_voted && peers_[*by_].has_voted;  // and has said why
  if (!all_have(&Peer::has_voted)) return false;
  for (RankMail::Ticket& each : memory_->sent) {
    if (!mail_.test(each)) return false;
  }
  return true;
}

void TimedExchange::send(std::string& message, Header header, std::string_view tail, RankMail::Ticket* sent) {
  header.length = tail.size();
  message.assign(reinterpret_cast<const char*>(&header), sizeof header);
  message += tail;
  for (std::size_t i = 1; i < peers_.size(); ++i) {
    *sent++ = mail_.send({message.data(), message.size()},
                         {.rank = (own_ + i) % peers_.size(), .tag = 0, .channel = RankMail::Channel::deadlines});
  }
}

}}}  // namespace fanout::v0::detail
