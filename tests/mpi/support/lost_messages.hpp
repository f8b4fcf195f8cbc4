// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

namespace fanout_test {

/// Messages from this rank to this one get lost: see MPI_Isend in main.cpp.
inline int lost_to = MPI_PROC_NULL;

/// True while this rank is slow to receive arrays: see MPI_Irecv in main.cpp.
inline bool receives_late = false;

}  // namespace fanout_test
