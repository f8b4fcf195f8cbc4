// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

#include <fanout/base/duration.hpp>
#include <fanout/collective/step_deadline.hpp>
#include <fanout/mpi/group/growing_pause.hpp>
#include <fanout/mpi/group/kept_messages.hpp>
#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/rank_words.hpp>
#include <fanout/mpi/group/timed_outcome.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Exchanges of words between all ranks of a communicator that wait for other ranks only until a deadline. All ranks
/// make them in the same order. Each rank sends its words to each other one. A rank that has the words of all sends its
/// vote: ready. A rank whose deadline is over before that sends that it gives up, and so does a rank that hears this.
/// An exchange is complete if all ranks voted ready. So it is complete on all ranks or on none, and a rank that comes
/// late finds the votes of those that gave it up. Votes need no deadline: each rank that has sent its words votes at
/// its own.
///
/// Nothing is left open between two exchanges but what KeptMessages owns. Borrows the communicator, which is never
/// freed, and on which nobody else uses the tag. One thread at a time may use it.
class TimedExchange {
 public:
  TimedExchange(MPI_Comm over, int tag, int rank, int size)
      : over_(over), tag_(tag), own_(static_cast<std::size_t>(rank)), names_(static_cast<std::size_t>(size)) {}

  /// `failure` is sent along: why this rank failed, or empty. `rest(wait)` calls `wait()`, during which this uses no
  /// MPI.
  template <class Rest>
  TimedOutcome run(const RankWords& mine, const backend::StepDeadline& deadline, const std::string& name,
                   const std::string& failure, const Rest& rest) {
    names_[own_] = name;
    Step step(*this, mine, deadline, failure);
    step.send_words(name);
    for (const GrowingPause pause;;) {
      step.receive();
      if (step.has_ended()) break;
      const Clock::Time end = step.has_voted() ? Clock::never : deadline.at;
      rest([&pause, end] { pause(end); });
    }
    return std::move(step).outcome();
  }

  /// `rank 1 on node7`, or `rank 1` as long as nothing has come from it.
  std::string name_of(std::size_t rank) const {
    return names_[rank].empty() ? "rank " + std::to_string(rank) : names_[rank];
  }

 private:
  static constexpr std::size_t longest = 1000;  // of a text, so that a message is one that MPI sends without an answer

  // A rank that comes after its own deadline, with an exception, looks this long for what others have sent.
  static constexpr Duration at_least = std::chrono::milliseconds(2);

  enum class Kind : std::uint64_t { words, ready, gives_up };

  struct Header {
    Kind kind;
    std::uint64_t step;
    RankWords words;
    // The rest is set if the step is given up: see GivenUp.
    std::uint64_t by = 0;
    std::int64_t patience = 0;  // in nanoseconds
    std::uint64_t failed = 0;
  };

  /// The state of one exchange: what has come from each rank, and what this rank has voted.
  class Step {
   public:
    Step(TimedExchange& exchange, const RankWords& mine, const backend::StepDeadline& deadline,
         const std::string& failure)
        : exchange_(exchange),
          number_(exchange.steps_++),
          give_up_at_(std::max(deadline.at, Clock::after(at_least))),
          patience_(deadline.patience),
          failure_(failure),
          peers_(size()) {
      peers_[exchange.own_] = {.words = mine, .failure = failure, .has_arrived = true, .has_voted = false};
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() {
      if (has_voted()) return;
      try {  // an exception: others must not wait for this rank
        give_up();
      } catch (...) {  // MPI itself has failed
      }
    }

    void send_words(const std::string& name) {
      send({.kind = Kind::words, .step = number_, .words = mine()},
           name.substr(0, longest) + '\0' + failure_.substr(0, longest));
    }

    /// Receives what has come. Votes if it can.
    void receive() {
      for (std::size_t from = 0; from < size(); ++from) {
        while (from != exchange_.own_ && !peers_[from].has_voted && receive_from(from)) {
        }
      }
      if (has_voted()) return;
      if (!outcome_.given_up.empty() || (!all_have(&Peer::has_arrived) && Clock::now() >= give_up_at_)) {
        give_up();
      } else if (all_have(&Peer::has_arrived)) {
        peers_[exchange_.own_].has_voted = true;
        send({.kind = Kind::ready, .step = number_, .words = mine()}, {});
      }
    }

    bool has_voted() const noexcept { return peers_[exchange_.own_].has_voted; }
    bool has_ended() const noexcept { return !outcome_.given_up.empty() || all_have(&Peer::has_voted); }

    TimedOutcome outcome() && {
      for (Peer& peer : peers_) {
        outcome_.words.push_back(peer.words);
        outcome_.failures.push_back(std::move(peer.failure));
      }
      return std::move(outcome_);
    }

   private:
    struct Peer {
      RankWords words{};
      std::string failure{};
      bool has_arrived = false;
      bool has_voted = false;
    };

    std::size_t size() const noexcept { return exchange_.names_.size(); }

    bool all_have(bool Peer::*what) const noexcept {
      return std::all_of(peers_.begin(), peers_.end(), [what](const Peer& peer) { return peer.*what; });
    }

    const RankWords& mine() const noexcept { return peers_[exchange_.own_].words; }

    /// Sends that the step is given up: by the rank that did so first, as far as is known here.
    void give_up() {
      peers_[exchange_.own_].has_voted = true;
      if (outcome_.given_up.empty()) {
        GivenUp& own = outcome_.given_up.emplace_back(GivenUp{.rank = exchange_.own_,
                                                              .patience = patience_,
                                                              .missing = {},
                                                              .failed = mine().failed,
                                                              .failure = failure_.substr(0, longest)});
        for (std::size_t i = 0; i < size(); ++i) {
          if (!peers_[i].has_arrived) own.missing.push_back(i);
        }
      }
      const GivenUp& first = outcome_.given_up.front();
      std::string bits(bytes_of_bits(), '\0');  // of the ranks that are missing
      for (const std::size_t rank : first.missing) {
        bits[rank / 8] = static_cast<char>(bits[rank / 8] | (1 << (rank % 8)));
      }
      send({.kind = Kind::gives_up,
            .step = number_,
            .words = mine(),
            .by = first.rank,
            .patience = first.patience.nanoseconds(),
            .failed = first.failed},
           bits + first.failure);
    }

    void send(const Header& header, const std::string& tail) {
      auto bytes = std::make_shared<std::string>(sizeof header, '\0');
      std::memcpy(bytes->data(), &header, sizeof header);
      *bytes += tail;
      for (std::size_t i = 1; i < size(); ++i) {
        const std::size_t to = (exchange_.own_ + i) % size();
        KeptMessages::of_process().send(bytes, static_cast<int>(to), exchange_.tag_, exchange_.over_);
      }
    }

    /// Receives one message. Returns false if there is none.
    bool receive_from(std::size_t from) {
      const int source = static_cast<int>(from);
      int is_there = 0;
      MPI_Status status;
      check_mpi(MPI_Iprobe(source, exchange_.tag_, exchange_.over_, &is_there, &status), "MPI_Iprobe");
      if (is_there == 0) return false;
      int length = 0;
      check_mpi(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
      std::string bytes(static_cast<std::size_t>(length), '\0');
      check_mpi(MPI_Recv(bytes.data(), length, MPI_BYTE, source, exchange_.tag_, exchange_.over_, MPI_STATUS_IGNORE),
                "MPI_Recv");
      Header header;
      std::memcpy(&header, bytes.data(), sizeof header);
      note(from, header, bytes.substr(sizeof header));
      return true;
    }

    void note(std::size_t from, const Header& header, const std::string& tail) {
      const std::size_t name = std::min(tail.find('\0'), tail.size());
      if (header.kind == Kind::words) exchange_.names_[from] = tail.substr(0, name);
      if (header.step != number_) return;  // of an earlier exchange, which ended without it
      Peer& peer = peers_[from];
      if (header.kind == Kind::words && name < tail.size()) peer.failure = tail.substr(name + 1);
      peer.words = header.words;
      peer.has_arrived = true;
      peer.has_voted = header.kind != Kind::words;
      if (header.kind == Kind::gives_up) note_given_up(header, tail);
    }

    void note_given_up(const Header& header, const std::string& tail) {
      const auto by = static_cast<std::size_t>(header.by);
      for (const GivenUp& known : outcome_.given_up) {
        if (known.rank == by) return;
      }
      GivenUp& given_up = outcome_.given_up.emplace_back(GivenUp{.rank = by,
                                                                 .patience = std::chrono::nanoseconds(header.patience),
                                                                 .missing = {},
                                                                 .failed = header.failed,
                                                                 .failure = tail.substr(bytes_of_bits())});
      for (std::size_t i = 0; i < size(); ++i) {
        if ((static_cast<unsigned char>(tail[i / 8]) >> (i % 8) & 1U) != 0) given_up.missing.push_back(i);
      }
    }

    std::size_t bytes_of_bits() const noexcept { return (size() + 7) / 8; }

    TimedExchange& exchange_;
    const std::uint64_t number_;
    const Clock::Time give_up_at_;
    const Duration patience_;
    const std::string& failure_;
    std::vector<Peer> peers_;
    TimedOutcome outcome_;
  };

  MPI_Comm over_;
  int tag_;
  std::size_t own_;
  std::uint64_t steps_ = 0;
  std::vector<std::string> names_;
};

}}}  // namespace fanout::v0::detail
