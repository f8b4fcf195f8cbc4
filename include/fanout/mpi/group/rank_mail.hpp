// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <fanout/mpi/group/fair_mutex.hpp>
#include <fanout/mpi/group/message_blocks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The messages between the ranks of a group: those of MPI (MpiMail), or of threads in tests. Four functions move them.
/// The others say what a thread needs to use them. A thread that calls any of the four holds mutex().
class RankMail {
 public:
  /// Messages of the second channel may arrive when the group is gone: see TimedExchange.
  enum class Channel : unsigned char { calls, deadlines };

  struct Address {
    std::size_t rank;
    int tag;
    Channel channel = Channel::calls;
  };

  /// A message in flight, or none.
  struct Ticket {
    std::uint64_t number = 0;
    bool is_open = false;
  };

  RankMail() = default;
  RankMail(const RankMail&) = delete;
  RankMail& operator=(const RankMail&) = delete;
  virtual ~RankMail() = default;

  /// Starts a message. Does not wait. The memory must live until the message has ended. Messages between two ranks with
  /// one tag arrive in order.
  virtual Ticket send(const MessageBlocks& blocks, const Address& to) const = 0;
  /// The same. A shorter message may arrive than the blocks have room for.
  virtual Ticket receive(const MessageBlocks& blocks, const Address& from) const = 0;
  /// True if there is no message, or if it has ended: it has been received, or its memory may be overwritten.
  virtual bool test(Ticket& ticket) const = 0;
  /// Ends a message: nothing more is received into its memory. What is being sent may still be read, if the other rank
  /// receives it.
  virtual void give_up(Ticket& ticket, bool receives) const noexcept = 0;

  std::size_t rank() const noexcept { return rank_; }
  std::size_t size() const noexcept { return hosts_.size(); }
  /// `rank 1 on node7`.
  std::string name_of(std::size_t rank) const { return "rank " + std::to_string(rank) + " on " + hosts_[rank].name; }

  /// The largest tag of a message.
  virtual int largest_tag() const { return 32767; }
  /// The number of this process among those of the program.
  virtual std::uint64_t process() const { return rank_; }

  /// What a thread holds while it uses the messages.
  virtual FairMutex& mutex() const noexcept = 0;
  /// Throws Error if no thread may use the messages, or this one may not.
  virtual void check_this_thread() const {}
  virtual bool allows_this_thread() const noexcept { return true; }
  virtual bool allows_any_thread() const noexcept { return true; }
  /// Throws Error if only the main thread may use them.
  virtual void check_any_thread() const {}

  /// Throws on all ranks if one of them has a failure. All ranks call it, before they have memory for an exchange.
  virtual void all_have_memory(const std::exception_ptr& own) const = 0;

  /// True if a rank was lost, so that all messages end with errors.
  virtual bool is_lost() const noexcept { return false; }
  /// Called in a `catch` block. Throws RankLost if the exception says that a rank was lost.
  virtual void throw_if_lost() const {}

  /// Late ranks may still send messages: nobody else may ever receive them. All ranks call this, or none.
  virtual void keep() const noexcept {}

 protected:
  struct Host {
    char name[64] = {};
  };

  std::size_t rank_ = 0;
  std::vector<Host> hosts_;  // of each rank
};

}}}  // namespace fanout::v0::detail
