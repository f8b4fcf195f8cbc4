// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
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
/// A rank without memory for the exchange gives it up. It votes ready only if it has the memory for the rest.
///
/// Nothing is left open between two exchanges but what KeptMessages owns. Borrows the communicator, which is never
/// freed, and on which nobody else uses the tag. One thread at a time may use it.
class TimedExchange {
 public:
  TimedExchange(int rank, int size)
      : own_(static_cast<std::size_t>(rank)),
        names_(static_cast<std::size_t>(size)),
        peers_(names_.size()),
        arriving_(most_bytes(), '\0') {
    KeptMessages::of_process();  // made here, where memory may be missing
    vote_ = prepared();
    spare_ = prepared();
  }

  /// Must come before run().
  void open(MPI_Comm over, int tag) noexcept {
    over_ = over;
    tag_ = tag;
  }

  /// Sets `all` to the words of all ranks, and returns nothing. Otherwise returns how the step was given up. `name()`
  /// is the name of this rank. `failure()` is sent along: why this rank failed, or empty. `rest(wait)` calls `wait()`,
  /// during which this uses no MPI. If it throws, no rank completes the exchange.
  template <class Name, class Failure, class Rest>
  std::optional<TimedOutcome> run(const RankWords& mine, const backend::StepDeadline& deadline,
                                  std::vector<RankWords>& all, const Name& name, const Failure& failure,
                                  const Rest& rest) {
    Step step(*this, mine, deadline);
    names_[own_] = name();
    peers_[own_].failure = failure();
    step.send_words();
    for (const GrowingPause pause;;) {
      step.receive();
      if (step.has_ended()) break;
      const Clock::Time end = step.has_voted() ? Clock::never : deadline.at;
      rest([&pause, end] { pause(end); });
    }
    if (step.is_given_up()) return std::move(step).outcome();
    for (std::size_t i = 0; i < peers_.size(); ++i) all[i] = peers_[i].words;
    return std::nullopt;
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

  /// What has come from a rank in this exchange.
  struct Peer {
    RankWords words{};
    std::string failure{};
    bool has_arrived = false;
    bool has_voted = false;
  };

  /// One exchange. All that is sent and received after the vote has its memory before.
  class Step {
   public:
    /// Throws nothing, so that all ranks count the same steps.
    Step(TimedExchange& exchange, const RankWords& mine, const backend::StepDeadline& deadline) noexcept
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
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() {
      if (has_voted()) return;
      try {  // an exception: others must not wait for this rank
        own().words.failed |= RankWords::has_failed;
        vote_to_give_up();
      } catch (...) {  // MPI itself has failed
      }
    }

    void send_words() {
      if (!exchange_.spare_) exchange_.spare_ = exchange_.prepared();
      if (!exchange_.vote_) exchange_.vote_ = exchange_.prepared();
      KeptMessages::Prepared words = exchange_.prepared();
      begin(words, {.kind = Kind::words, .step = number_, .words = mine()});
      append(words, exchange_.names_[exchange_.own_]);
      words.bytes() += '\0';
      append(words, own().failure);
      send(words);
    }

    /// Receives what has come. Votes if it can.
    void receive() {
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

    bool has_voted() const noexcept { return exchange_.peers_[exchange_.own_].has_voted; }
    bool is_given_up() const noexcept { return !outcome_.given_up.empty(); }
    bool has_ended() const noexcept { return is_given_up() || all_have(&Peer::has_voted); }

    TimedOutcome outcome() && {
      for (const Peer& peer : peers()) {
        outcome_.words.push_back(peer.words);
        outcome_.failures.push_back(peer.failure);
      }
      return std::move(outcome_);
    }

   private:
    std::size_t size() const noexcept { return exchange_.names_.size(); }
    std::vector<Peer>& peers() const noexcept { return exchange_.peers_; }
    Peer& own() const noexcept { return peers()[exchange_.own_]; }

    bool all_have(bool Peer::*what) const noexcept {
      return std::all_of(peers().begin(), peers().end(), [what](const Peer& peer) { return peer.*what; });
    }

    const RankWords& mine() const noexcept { return own().words; }

    /// Sends that the step is given up: by the rank that did so first, as far as is known here.
    void give_up() {
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

    /// Allocates nothing.
    void vote_to_give_up() {
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

    static void begin(KeptMessages::Prepared& message, const Header& header) noexcept {
      message.bytes().assign(sizeof header, '\0');
      std::memcpy(message.bytes().data(), &header, sizeof header);
    }
    static void append(KeptMessages::Prepared& message, const std::string& text) noexcept {
      message.bytes().append(text, 0, longest);
    }

    /// Sends a message to all other ranks. Then it has no memory any more.
    void send(KeptMessages::Prepared& message) {
      for (std::size_t i = 1; i < size(); ++i) {
        const std::size_t to = (exchange_.own_ + i) % size();
        KeptMessages::of_process().send(message, static_cast<int>(to), exchange_.tag_, exchange_.over_);
      }
      message = {};
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
      std::string& bytes = exchange_.arriving_;
      check_mpi(MPI_Recv(bytes.data(), length, MPI_BYTE, source, exchange_.tag_, exchange_.over_, MPI_STATUS_IGNORE),
                "MPI_Recv");
      Header header;
      std::memcpy(&header, bytes.data(), sizeof header);
      note(from, header,
           std::string_view(bytes).substr(sizeof header, static_cast<std::size_t>(length) - sizeof header));
      return true;
    }

    void note(std::size_t from, const Header& header, std::string_view tail) {
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

    /// Keeps a text for errors if there is memory for it. The exchange goes on without it.
    static void keep(std::string& place, std::string_view text) noexcept {
      try {
        place = text;
      } catch (...) {
      }
    }

    void note_given_up(const Header& header, std::string_view tail) {
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

    TimedExchange& exchange_;
    const std::uint64_t number_;
    const Clock::Time give_up_at_;
    const Duration patience_;
    TimedOutcome outcome_;
  };

  std::size_t bytes_of_bits() const noexcept { return (names_.size() + 7) / 8; }
  std::size_t most_bytes() const noexcept {
    return sizeof(Header) + std::max(2 * longest + 1, bytes_of_bits() + longest);
  }
  KeptMessages::Prepared prepared() const { return {most_bytes(), names_.size() - 1}; }

  MPI_Comm over_ = MPI_COMM_NULL;
  int tag_ = 0;
  std::size_t own_;
  std::uint64_t steps_ = 0;
  std::vector<std::string> names_;
  std::vector<Peer> peers_;
  std::string arriving_;
  KeptMessages::Prepared vote_;   // of the next step
  KeptMessages::Prepared spare_;  // to give a step up for which there is no memory
};

}}}  // namespace fanout::v0::detail
