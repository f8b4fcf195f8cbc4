// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/thread_level.hpp>

#include <fanout/base/error.hpp>
#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

ThreadLevel::ThreadLevel() {
  check_running();
  check_mpi(MPI_Query_thread(&level_), "MPI_Query_thread");
  if (level_ == MPI_THREAD_SINGLE) {
    throw Error(explain({.what = "MPI was initialised for a program with one thread, and fanout's devices are threads",
                         .expected = "MPI_THREAD_FUNNELED or higher",
                         .found = "MPI_THREAD_SINGLE",
                         .advice = "call MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) instead of "
                                   "MPI_Init(&argc, &argv)"}));
  }
}

void ThreadLevel::check_running() {
  int initialized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized == 0) {
    throw Error(explain({.what = "MPI is not initialised",
                         .where = "mpi::Ranks",
                         .advice = "call MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) first"}));
  }
  int finalized = 0;
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  if (finalized != 0) {
    throw Error(explain({.what = "MPI has been finalised",
                         .where = "mpi::Ranks",
                         .advice = "let the mpi::Ranks end, and its last call, before MPI_Finalize()"}));
  }
}

void ThreadLevel::check_this_thread() const {
  if (allows_this_thread()) return;
  throw Error(explain({.what = "a thread that is not the main one used mpi::Ranks",
                       .expected = "the thread that initialised MPI, since its level is MPI_THREAD_FUNNELED",
                       .advice = "ask MPI_Init_thread for MPI_THREAD_SERIALIZED"}));
}

void ThreadLevel::check_any_thread() const {
  if (allows_any_thread()) return;
  throw Error(explain({.what = "a call of all ranks would use MPI on a device's thread",
                       .expected = "MPI_THREAD_SERIALIZED or higher",
                       .found = "MPI_THREAD_FUNNELED",
                       .advice = "ask MPI_Init_thread for MPI_THREAD_SERIALIZED, or make no asynchronous calls and "
                                 "give each rank one device"}));
}

}}}  // namespace fanout::v0::detail
