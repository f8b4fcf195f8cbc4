// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Adapts fanout to SimGrid's SMPI, which runs all ranks on one thread. Each rank has its own copy of this program's
// variables. All ranks share those of SimGrid. Include it in one source file, and link that with
// -Wl,-Bsymbolic-functions: it replaces functions of MPI for that file.

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <map>

namespace simgrid::kernel::activity {
class CommImpl;
}
using CopyOfMessage = void(simgrid::kernel::activity::CommImpl*, void*, std::size_t);
extern std::function<CopyOfMessage> smpi_comm_copy_data_callback;  // SimGrid exports it, but has no header for it

namespace scale {

/// Messages of at least so many bytes are not copied once fold_messages() was called. SMPI copies smaller ones when
/// they are sent, and frees these copies in the same function.
inline constexpr std::size_t folded_bytes = 65536;

/// From now on the time of large messages is simulated, but their elements do not arrive. So 1,024 ranks can exchange
/// 100 MB each in the memory of one machine: they never touch most of it. One rank calls this.
inline void fold_messages() {
  static const std::function<CopyOfMessage> copy = smpi_comm_copy_data_callback;
  smpi_comm_copy_data_callback = [](simgrid::kernel::activity::CommImpl* message, void* data, std::size_t bytes) {
    if (bytes < folded_bytes) copy(message, data, bytes);
  };
}

/// The memory that a datatype with one block stands for.
struct Block {
  void* begin;
  int bytes;
};

/// SMPI packs what it sends with a derived datatype into memory of its own. Datatypes that fanout makes for one block
/// of bytes are in this list, and messages of such a datatype are sent as bytes.
inline std::map<MPI_Datatype, Block>& blocks() {
  static std::map<MPI_Datatype, Block> made;
  return made;
}

}  // namespace scale

extern "C" {

// SMPI reports MPI_THREAD_SINGLE. It allows the main thread of a rank to call it, as MPI_THREAD_FUNNELED does.
inline int MPI_Query_thread(int* level) {
  *level = MPI_THREAD_FUNNELED;
  return MPI_SUCCESS;
}
inline int MPI_Is_thread_main(int* is_main) {
  *is_main = 1;
  return MPI_SUCCESS;
}

// SMPI takes minutes for a duplicate of 1,024 ranks. This program needs none, since it sends no messages of its own
// meanwhile.
inline int MPI_Comm_dup(MPI_Comm of, MPI_Comm* made) {
  *made = of;
  return MPI_SUCCESS;
}
inline int MPI_Comm_free(MPI_Comm* comm) { return *comm == MPI_COMM_WORLD ? MPI_SUCCESS : PMPI_Comm_free(comm); }

// A test of SMPI takes simulated time. fanout tests only to wait, and yields meanwhile.
inline int MPI_Testall(int count, MPI_Request* requests, int* done, MPI_Status* statuses) {
  *done = 1;
  return MPI_Waitall(count, requests, statuses);
}

inline int MPI_Type_create_hindexed(int count, const int* lengths, const MPI_Aint* begins, MPI_Datatype of,
                                    MPI_Datatype* type) {
  const int status = PMPI_Type_create_hindexed(count, lengths, begins, of, type);
  if (status == MPI_SUCCESS && count == 1) {
    scale::blocks()[*type] = {reinterpret_cast<void*>(begins[0]),
                              lengths[0]};  // NOLINT: an address is an integer in MPI
  }
  return status;
}
inline int MPI_Type_free(MPI_Datatype* type) {
  scale::blocks().erase(*type);
  return PMPI_Type_free(type);
}
inline int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm over,
                     MPI_Request* request) {
  const auto block = scale::blocks().find(type);
  if (block == scale::blocks().end()) return PMPI_Isend(data, count, type, to, tag, over, request);
  return PMPI_Isend(block->second.begin, block->second.bytes, MPI_BYTE, to, tag, over, request);
}
inline int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm over, MPI_Request* request) {
  const auto block = scale::blocks().find(type);
  if (block == scale::blocks().end()) return PMPI_Irecv(data, count, type, from, tag, over, request);
  return PMPI_Irecv(block->second.begin, block->second.bytes, MPI_BYTE, from, tag, over, request);
}

}  // extern "C"
