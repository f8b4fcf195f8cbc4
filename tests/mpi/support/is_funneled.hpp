// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

namespace fanout_test {

/// True if only the main thread may use MPI.
inline bool is_funneled() {
  int level = 0;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_FUNNELED;
}

}  // namespace fanout_test
