// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/mpi/group/message_blocks.hpp>
#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/ulfm.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The tags of messages over the communicator of a RankGroup. All after `rendezvous` are those of a MpiRendezvous.
enum MessageTag : int { trees, slices, slice_results, words, rendezvous = 16 };

/// Messages in flight. Those between two ranks with one tag arrive in order. They make progress in test() and wait().
/// Borrows the communicator, and the memory until all have ended.
class Messages {
 public:
  /// Room for `most` messages, so that starting them allocates nothing.
  explicit Messages(MPI_Comm over, std::size_t most = 0) : over_(over) { reserve(most); }
  Messages(Messages&& other) noexcept
      : over_(other.over_), open_(std::move(other.open_)), ends_(std::move(other.ends_)) {
    other.clear();
  }
  Messages& operator=(Messages&&) = delete;
  /// After an error, gives up the messages that are still in flight. If a rank was lost, waits until MPI uses their
  /// memory no more.
  FANOUT_INLINE ~Messages();

  void reserve(std::size_t most) {
    open_.reserve(most);
    ends_.reserve(most);
  }

  /// Starts a message of less than 2^31 bytes.
  void send(const void* data, std::size_t bytes, std::size_t to, int tag) {
    send(data, static_cast<int>(bytes), MPI_BYTE, to, tag);
  }
  void receive(void* data, std::size_t bytes, std::size_t from, int tag) {
    receive(data, static_cast<int>(bytes), MPI_BYTE, from, tag);
  }

  /// Starts a message of blocks, unless there are none. MPI keeps what it needs of their type.
  void send(const MessageBlocks& blocks, std::size_t to, int tag) {
    if (!blocks.empty()) send(MPI_BOTTOM, 1, MessageBlocks::Type(blocks).get(), to, tag);
  }
  void receive(const MessageBlocks& blocks, std::size_t from, int tag) {
    if (!blocks.empty()) receive(MPI_BOTTOM, 1, MessageBlocks::Type(blocks).get(), from, tag);
  }

  /// True if all have been received, or may be overwritten. Does not wait.
  FANOUT_INLINE bool test();

  /// Ends the messages with this tag to and from a rank that has left: receives nothing more into the memory. What is
  /// being sent may still be read, if the other rank receives it. Returns false if there are none in flight.
  FANOUT_INLINE bool give_up(std::size_t rank, int tag);

  /// Waits for that. Yields the core, since MPICH does not: with 3 ranks on 2 cores, 100 MB take a third of the time.
  void wait() {
    for (int tests = 0; !test(); ++tests) {
      if (tests >= tests_before_yield) std::this_thread::yield();
    }
  }

 private:
  static constexpr int tests_before_yield = 100;

  struct OtherEnd {
    std::size_t rank;
    int tag;
    bool receives;  // from there
  };

  void send(const void* data, int count, MPI_Datatype type, std::size_t to, int tag) {
    MPI_Request& request = add({.rank = to, .tag = tag, .receives = false});
    check_mpi(MPI_Isend(data, count, type, static_cast<int>(to), tag, over_, &request), "MPI_Isend");
  }
  void receive(void* data, int count, MPI_Datatype type, std::size_t from, int tag) {
    MPI_Request& request = add({.rank = from, .tag = tag, .receives = true});
    check_mpi(MPI_Irecv(data, count, type, static_cast<int>(from), tag, over_, &request), "MPI_Irecv");
  }

  MPI_Request& add(const OtherEnd& end) {
    ends_.push_back(end);
    return open_.emplace_back(MPI_REQUEST_NULL);
  }

  void clear() noexcept {
    open_.clear();
    ends_.clear();
  }

  MPI_Comm over_;
  std::vector<MPI_Request> open_;
  std::vector<OtherEnd> ends_;  // of each
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/messages.ipp>
#endif
