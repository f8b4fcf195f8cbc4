// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ranks that belong together, and where the operations of their streams meet.
#pragma once

#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "board.hpp"

namespace stand_in_nccl {

/// What one rank asks for.
struct Operation {
  const char* name = "";
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t reduction = ncclSum;
  int other = -1;    ///< the root, or the peer of a send or receive
  double scale = 1;  ///< by which the rank's numbers are multiplied first

  bool is_point_to_point() const;
  /// How much there is at each end, in elements.
  std::size_t send_count(int ranks, int rank) const;
  std::size_t recv_count(int ranks, int rank) const;
  std::string text() const;
};

std::size_t size_of(ncclDataType_t type);
const char* name_of(ncclDataType_t type);
bool known(ncclDataType_t type, ncclRedOp_t reduction);
/// Does the operation for all ranks at once; reductions in the order of the ranks.
void perform(const std::vector<Operation>& ranks);

/// What one rank does at a place of its own in its stream.
struct Rank {
  int device = -1;
  bool aborted = false;
  int waits = 0;  ///< operations that wait for other ranks
  std::atomic<int> error{ncclSuccess};
};

/// A collective: the ranks come one by one, and the last does it for all.
struct Meeting {
  std::vector<Operation> ranks;
  std::vector<bool> here;
  int missing = 0;
  bool over = false;
};

/// One side of a send and receive that has come before the other.
struct Post {
  Operation operation;
  bool done = false;
};

/// Its functions are called by threads of streams. Its mutex is the only order between them, and orders just those that
/// meet.
class Clique {
 public:
  /// With a board, ranks may be in other processes.
  Clique(unsigned number, int ranks, std::unique_ptr<Board> board);

  void collective(int rank, std::uint64_t number, const Operation& operation);
  /// All at once, as in a group.
  void point_to_point(int rank, const std::vector<Operation>& operations);
  /// Lets what waits for these ranks' partners go on without them. Those of one group at once: otherwise a rank that is
  /// aborted last could still write into the memory of one that has gone on.
  void abort(const std::vector<int>& ranks);
  /// Returns when no other rank waits that was not aborted: to abort one rank alone waits for the others to be aborted.
  void await_others(int rank);
  Rank& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(ranks_.size()); }
  unsigned number() const { return number_; }
  const Board* board() const { return board_.get(); }

 private:
  void collective_on_board(int rank, std::uint64_t number, const Operation& operation);
  void point_to_point_on_board(int rank, const std::vector<Operation>& operations);
  /// Waits for a note that is there, or is not. Returns false if the rank is aborted, or was not waited for any longer.
  bool await(int rank, const Operation& operation, const std::string& note, int other, bool there);
  bool wait(std::unique_lock<std::mutex>& lock, int rank, const bool& over);
  void fail(const char* call, const std::string& what);
  std::string who_is_missing(const Meeting& meeting) const;

  const unsigned number_;
  const std::unique_ptr<Board> board_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<std::uint64_t, std::shared_ptr<Meeting>> meetings_;
  std::map<std::pair<int, int>, std::vector<std::shared_ptr<Post>>> sends_, receives_;
  std::map<std::pair<int, int>, std::uint64_t> sent_, received_;  // notes so far
};

/// The text of ncclGetLastError.
void set_last_error(const std::string& what);

}  // namespace stand_in_nccl
