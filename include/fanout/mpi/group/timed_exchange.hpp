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
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/step_deadline.hpp>
#include <fanout/mpi/group/growing_pause.hpp>
#include <fanout/mpi/group/kept_messages.hpp>
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
  FANOUT_INLINE TimedExchange(int rank, int size);

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
    FANOUT_INLINE Step(TimedExchange& exchange, const RankWords& mine, const backend::StepDeadline& deadline) noexcept;
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    FANOUT_INLINE ~Step();

    FANOUT_INLINE void send_words();

    /// Receives what has come. Votes if it can.
    FANOUT_INLINE void receive();

    bool has_voted() const noexcept { return exchange_.peers_[exchange_.own_].has_voted; }
    bool is_given_up() const noexcept { return !outcome_.given_up.empty(); }
    bool has_ended() const noexcept { return is_given_up() || all_have(&Peer::has_voted); }

    FANOUT_INLINE TimedOutcome outcome() &&;

   private:
    std::size_t size() const noexcept { return exchange_.names_.size(); }
    std::vector<Peer>& peers() const noexcept { return exchange_.peers_; }
    Peer& own() const noexcept { return peers()[exchange_.own_]; }

    bool all_have(bool Peer::*what) const noexcept {
      return std::all_of(peers().begin(), peers().end(), [what](const Peer& peer) { return peer.*what; });
    }

    const RankWords& mine() const noexcept { return own().words; }

    /// Sends that the step is given up: by the rank that did so first, as far as is known here.
    FANOUT_INLINE void give_up();

    /// Allocates nothing.
    FANOUT_INLINE void vote_to_give_up();

    static void begin(KeptMessages::Prepared& message, const Header& header) noexcept {
      message.bytes().assign(sizeof header, '\0');
      std::memcpy(message.bytes().data(), &header, sizeof header);
    }
    static void append(KeptMessages::Prepared& message, const std::string& text) noexcept {
      message.bytes().append(text, 0, longest);
    }

    /// Sends a message to all other ranks. Then it has no memory any more.
    FANOUT_INLINE void send(KeptMessages::Prepared& message);

    /// Receives one message. Returns false if there is none.
    FANOUT_INLINE bool receive_from(std::size_t from);

    FANOUT_INLINE void note(std::size_t from, const Header& header, std::string_view tail);

    /// Keeps a text for errors if there is memory for it. The exchange goes on without it.
    FANOUT_INLINE static void keep(std::string& place, std::string_view text) noexcept;

    FANOUT_INLINE void note_given_up(const Header& header, std::string_view tail);

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

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/timed_exchange.ipp>
#endif
