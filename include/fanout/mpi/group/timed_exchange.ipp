// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/timed_exchange.hpp>

#include <cstring>
#include <type_traits>

#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

TimedExchange::TimedExchange(int rank, int size)
    : own_(static_cast<std::size_t>(rank)), peers_(static_cast<std::size_t>(size)), sent_(std::make_unique<Sent>()) {
  static_assert(std::is_trivially_copyable_v<Header>);
  sent_->words.reserve(sizeof(Header) + longest);
  sent_->vote.reserve(sizeof(Header) + bytes_of_bits());
  sent_->requests.assign(2 * (peers_.size() - 1), MPI_REQUEST_NULL);
  arriving_.resize(sizeof(Header) + std::max(longest, bytes_of_bits()));
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
  begin(sent_->words, {.kind = Kind::words, .words = mine});
  sent_->words += own().failure;
  send(sent_->words, sent_->requests.data());
}

void TimedExchange::receive() {
  for (std::size_t from = 0; from < peers_.size(); ++from) {
    // After its vote, a rank may have sent words of the next exchange.
    while (from != own_ && !peers_[from].has_voted && receive_from(from)) {
    }
  }
}

bool TimedExchange::receive_from(std::size_t from) {
  const int source = static_cast<int>(from);
  int is_there = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(source, tag_, over_, &is_there, &status), "MPI_Iprobe");
  if (is_there == 0) return false;
  int length = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
  check_mpi(MPI_Recv(arriving_.data(), length, MPI_BYTE, source, tag_, over_, MPI_STATUS_IGNORE), "MPI_Recv");
  Header header;
  std::memcpy(&header, arriving_.data(), sizeof header);
  note(from, header,
       std::string_view(arriving_).substr(sizeof header, static_cast<std::size_t>(length) - sizeof header));
  return true;
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
  begin(sent_->vote, header);
  if (by_ == own_) sent_->vote += missing_;
  send(sent_->vote, sent_->requests.data() + (peers_.size() - 1));
}

bool TimedExchange::has_ended() {
  if (by_) return own().has_voted && peers_[*by_].has_voted;  // and has said why
  if (!all_have(&Peer::has_voted)) return false;
  int is_sent = 0;
  check_mpi(
      MPI_Testall(static_cast<int>(sent_->requests.size()), sent_->requests.data(), &is_sent, MPI_STATUSES_IGNORE),
      "MPI_Testall");
  return is_sent != 0;
}

void TimedExchange::send(const std::string& message, MPI_Request* request) {
  for (std::size_t i = 1; i < peers_.size(); ++i) {
    const std::size_t to = (own_ + i) % peers_.size();
    check_mpi(MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, static_cast<int>(to), tag_, over_,
                        request++),
              "MPI_Isend");
  }
}

}}}  // namespace fanout::v0::detail
