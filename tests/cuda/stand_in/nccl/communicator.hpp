// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <thread>

#include "clique.hpp"

/// What NCCL's header only names.
struct ncclComm {
  std::shared_ptr<stand_in_nccl::Clique> clique;
  int rank = 0;
  int device = 0;
  std::uint64_t next = 1;  ///< of the collectives that are asked for
  bool blocking = true;
  int unready = 0;                       ///< so many times ncclCommGetAsyncError says that a call is in progress
  std::function<ncclResult_t()> starts;  ///< what that call starts then
  std::thread::id user;                  ///< the thread that is calling a collective, or has asked for one in a group

  /// A sum of numbers that are multiplied by a scalar first.
  struct Reduction {
    ncclDataType_t type;
    double scale;
    bool alive;
  };
  std::vector<Reduction> reductions;  ///< those behind NCCL's own
};

namespace stand_in_nccl {

/// ncclSuccess, or why the function cannot go on.
ncclResult_t enter(const char* function);
/// Whether it is a communicator that has not been destroyed; if not, it is reported.
bool alive(const char* function, ncclComm_t comm);
/// How often one has to ask until a call of a communicator that does not block has started.
inline constexpr int looks_until_ready = 3;
/// Reports a use while the last call is in progress.
bool ready(const char* function, ncclComm_t comm);
/// From now on only this thread may use it. Reports another thread that does.
void begin_use(const char* function, ncclComm_t comm);
void end_use(ncclComm_t comm);
/// Aborts all at once.
void abort_all(const std::vector<ncclComm_t>& comms);

/// Inside a group: what starts at its end.
void start(ncclComm_t comm, cudaStream_t stream, const Operation& operation);
/// Notes why, for ncclGetLastError.
ncclResult_t refuse(ncclResult_t result, const std::string& why);

/// One rank that wants to come into a clique, in ncclCommInitRank.
struct Join {
  ncclComm_t* out = nullptr;
  std::string id;     ///< of the clique
  std::string board;  ///< its name, if ranks may be in other processes
  int ranks = 0;
  int rank = 0;
  int device = 0;
  bool blocking = true;
};
/// All of one thread's at once, since none of them returns before the last rank of each clique is there.
ncclResult_t join(const std::vector<Join>& wanted);

bool in_group();
void add_to_group(const Join& wanted);
void add_abort_to_group(ncclComm_t comm);

}  // namespace stand_in_nccl
