// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/base/duration.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/step_deadline.hpp>
#include <fanout/mpi/group/growing_pause.hpp>
#include <fanout/mpi/group/rank_mail.hpp>
#include <fanout/mpi/group/rank_words.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How ranks gave an exchange up, as far as this rank knows.
struct GivenUp {
  std::size_t by = 0;                 ///< the rank that gave up first
  Duration patience;                  ///< its deadline
  std::vector<std::size_t> missing;   ///< ranks whose words it did not have
  std::vector<std::string> failures;  ///< why each rank has failed; empty if it has not, or its words have not come
};

/// Exchanges of words between all ranks of a communicator that wait for other ranks only until a deadline. All ranks
/// make them in the same order. Each rank sends its words to each other one, and then its vote. It votes ready if it
/// has the words of all. It gives up if its deadline is over before that, or if another rank has given up. The exchange
/// is complete if all ranks vote ready. So it is complete on all ranks or on none, and a late rank finds the votes of
/// those that gave up. Votes need no deadline: each rank that has sent its words votes at its own deadline.
///
/// No message is left when an exchange is complete. After one that was given up, none must follow. An exchange
/// allocates nothing. Borrows the mail, whose second channel nobody else uses. One thread at a time may use it.
class TimedExchange {
 public:
  explicit TimedExchange(const RankMail& mail) noexcept : mail_(mail), own_(mail.rank()) {}
  TimedExchange(const TimedExchange&) = delete;
  TimedExchange& operator=(const TimedExchange&) = delete;
  /// A late rank may still receive what was sent, and send what is received. So the memory of messages of an exchange
  /// that was given up is never freed.
  ~TimedExchange() {
    if (memory_ != nullptr && any_open()) static_cast<void>(memory_.release());
  }

  /// Allocates all that run() needs, and must come before it.
  FANOUT_INLINE void prepare();

  /// Sets `all` to the words of all ranks, zero for those that have not come. Returns true if the exchange is complete,
  /// and false if it was given up. `failure` says why this rank has failed, and is sent along. `rest(wait)` calls
  /// `wait()`, during which this does not use the mail.
  template <class Rest>
  bool run(const RankWords& mine, const backend::StepDeadline& deadline, std::vector<RankWords>& all,
           std::string_view failure, const Rest& rest) {
    const Clock::Time end = std::max(deadline.at, Clock::after(at_least));
    send_words(mine, failure);
    for (const GrowingPause pause;;) {
      receive();
      if (!own().has_voted) vote(deadline.patience, Clock::now() >= end);
      if (has_ended()) break;
      rest([&] { pause(own().has_voted ? Clock::never : end); });
    }
    for (std::size_t i = 0; i < peers_.size(); ++i) all[i] = peers_[i].words;
    return !by_;
  }

  /// How run() was given up.
  FANOUT_INLINE GivenUp given_up() const;

 private:
  static constexpr std::size_t longest = 1000;  // of a text, so that a message is one that MPI sends without an answer

  // A rank that comes after its own deadline, with an exception, looks this long for what others have sent.
  static constexpr Duration at_least = std::chrono::milliseconds(2);

  enum class Kind : std::uint64_t { words, ready, gives_up };

  /// The begin of a message. Words are followed by the text of a failure, a vote to give up by a bit for each rank that
  /// is missing.
  struct Header {
    Kind kind = Kind::words;
    std::uint64_t length = 0;  // of what follows
    RankWords words{};
    std::uint64_t by = 0;       // of a vote to give up: the rank that gave up first. The rest is set on this rank only.
    std::int64_t patience = 0;  // in nanoseconds
  };

  /// What has come from a rank.
  struct Peer {
    RankWords words{};
    std::string failure{};
    bool has_arrived = false;
    bool has_voted = false;
  };

  struct Arriving {
    std::string bytes{};
    RankMail::Ticket ticket{};
  };
  struct Memory {
    std::string words;
    std::string vote;
    std::vector<RankMail::Ticket> sent;  // first those of the words
    std::vector<Arriving> arriving;      // of each rank
  };

  Peer& own() noexcept { return peers_[own_]; }
  bool all_have(bool Peer::*what) const noexcept {
    return std::all_of(peers_.begin(), peers_.end(), [what](const Peer& peer) { return peer.*what; });
  }
  std::size_t bytes_of_bits() const noexcept { return (peers_.size() + 7) / 8; }

  FANOUT_INLINE void send_words(const RankWords& mine, std::string_view failure);

  /// Takes in what has come.
  FANOUT_INLINE void receive();
  /// Begins to receive a message.
  FANOUT_INLINE void open(std::size_t from);
  FANOUT_INLINE void note(std::size_t from, const Header& header, std::string_view tail);

  /// Sends the vote of this rank if it can vote. `is_late`: its deadline is over.
  FANOUT_INLINE void vote(Duration patience, bool is_late);

  FANOUT_INLINE bool has_ended();

  bool any_open() const noexcept {
    return std::any_of(memory_->sent.begin(), memory_->sent.end(), [](const auto& each) { return each.is_open; }) ||
           std::any_of(memory_->arriving.begin(), memory_->arriving.end(),
                       [](const Arriving& each) { return each.ticket.is_open; });
  }

  /// `message`: its memory. `sent`: the tickets of its copies.
  FANOUT_INLINE void send(std::string& message, Header header, std::string_view tail, RankMail::Ticket* sent);

  const RankMail& mail_;
  std::size_t own_;
  std::vector<Peer> peers_;
  std::unique_ptr<Memory> memory_;
  std::optional<std::size_t> by_;  // the rank that gave up first, if any has
  Duration patience_;              // of that rank
  std::string missing_;            // a bit for each rank
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/timed_exchange.ipp>
#endif
