// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// All of fanout with the ranks of an MPI program. Needs mpi.h. Programs link the MPI library: compile with mpicxx, or
// use the CMake target fanout::mpi.
#include <fanout/base/requirements.hpp>
#include <fanout/fanout.hpp>
#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/rank_lost.hpp>
#include <fanout/mpi/ranks.hpp>
#include <fanout/parallel/broadcast_from.hpp>
