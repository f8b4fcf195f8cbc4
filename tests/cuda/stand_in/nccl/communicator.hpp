// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "clique.hpp"

/// What NCCL's header only names.
struct ncclComm {
  std::shared_ptr<stand_in_nccl::Clique> clique;
  int rank = 0;
  int device = 0;
  std::uint64_t next = 1;  ///< of the collectives that are asked for
};

namespace stand_in_nccl {

/// ncclSuccess, or why the function cannot go on.
ncclResult_t enter(const char* function);
/// Whether it is a communicator that has not been destroyed; if not, it is reported.
bool alive(const char* function, ncclComm_t comm);
/// Inside a group: what starts at its end.
void start(ncclComm_t comm, cudaStream_t stream, const Operation& operation);
/// Notes why, for ncclGetLastError.
ncclResult_t refuse(ncclResult_t result, const std::string& why);

/// One rank that wants to come into a clique, in ncclCommInitRank.
struct Join {
  ncclComm_t* out = nullptr;
  unsigned number = 0;
  int ranks = 0;
  int rank = 0;
  int device = 0;
};
/// All of one thread's at once, since none of them returns before the last rank of each clique is there.
ncclResult_t join(const std::vector<Join>& wanted);

bool in_group();
void add_to_group(const Join& wanted);

}  // namespace stand_in_nccl
