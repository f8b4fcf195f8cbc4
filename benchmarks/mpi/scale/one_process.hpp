// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Adapts fanout to SimGrid's SMPI, which runs all ranks on one thread. Each rank has its own copy of this program's
// variables. All ranks share those of SimGrid. Include it in one source file, and link that with
// -Wl,-Bsymbolic-functions: it replaces functions of MPI for that file.

#include <mpi.h>

#include <cstddef>
#include <functional>

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
inline int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  *done = 1;
  return MPI_Wait(request, status);
}

}  // extern "C"
