// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/mpi/group/message_blocks.hpp>
#include <fanout/mpi/group/rank_mail.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The tags of messages between the ranks of a RankGroup. All after `rendezvous` are those of a MpiRendezvous.
enum MessageTag : int { trees, slices, slice_results, words, texts, rendezvous = 16 };

/// Messages in flight. They make progress in test() and wait(). Borrows the mail, and the memory until all have ended.
class Messages {
 public:
  /// Room for `most` messages, so that starting them allocates nothing.
  explicit Messages(const RankMail& mail, std::size_t most = 0) : mail_(mail) { reserve(most); }
  Messages(Messages&& other) noexcept : mail_(other.mail_), open_(std::move(other.open_)) { other.open_.clear(); }
  Messages& operator=(Messages&&) = delete;
  /// After an error, gives up the messages that are still in flight.
  ~Messages() { give_up_all(); }
  void give_up_all() noexcept {
    for (Open& each : open_) mail_.give_up(each.ticket, each.receives);
    open_.clear();
  }

  void reserve(std::size_t most) { open_.reserve(most); }

  /// Starts a message.
  void send(const void* data, std::size_t bytes, std::size_t to, int tag) { send({data, bytes}, to, tag); }
  void receive(void* data, std::size_t bytes, std::size_t from, int tag) { receive({data, bytes}, from, tag); }

  /// Starts a message of blocks, unless there are none.
  void send(const MessageBlocks& blocks, std::size_t to, int tag) {
    if (!blocks.empty()) add(false, to, tag).ticket = mail_.send(blocks, {.rank = to, .tag = tag});
  }
  void receive(const MessageBlocks& blocks, std::size_t from, int tag) {
    if (!blocks.empty()) add(true, from, tag).ticket = mail_.receive(blocks, {.rank = from, .tag = tag});
  }

  /// True if all have been received, or may be overwritten. Does not wait.
  bool test() {
    for (Open& each : open_) {
      if (!mail_.test(each.ticket)) return false;
    }
    open_.clear();
    return true;
  }

  /// Ends the messages with this tag to and from a rank that has left: receives nothing more into the memory. What is
  /// being sent may still be read, if the other rank receives it. Returns false if there are none in flight.
  bool give_up(std::size_t rank, int tag) {
    bool any = false;
    for (Open& each : open_) {
      if (each.rank != rank || each.tag != tag || mail_.test(each.ticket)) continue;
      mail_.give_up(each.ticket, each.receives);
      any = true;
    }
    return any;
  }

  /// Waits for that. Yields the core, since MPICH does not: with 3 ranks on 2 cores, 100 MB take a third of the time.
  void wait() {
    for (int tests = 0; !test(); ++tests) {
      if (tests >= tests_before_yield) std::this_thread::yield();
    }
  }

 private:
  static constexpr int tests_before_yield = 100;

  struct Open {
    RankMail::Ticket ticket;
    std::size_t rank;
    int tag;
    bool receives;  // from there
  };

  Open& add(bool receives, std::size_t rank, int tag) {
    return open_.emplace_back(Open{.ticket = {}, .rank = rank, .tag = tag, .receives = receives});
  }

  const RankMail& mail_;
  std::vector<Open> open_;
};

}}}  // namespace fanout::v0::detail
