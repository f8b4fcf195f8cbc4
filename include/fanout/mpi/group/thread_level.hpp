// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <mpi.h>

#include <fanout/base/error.hpp>
#include <fanout/mpi/group/fair_mutex.hpp>
#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The level at which the user has initialised MPI, which says what threads may use it.
class ThreadLevel {
 public:
  /// Throws Error if MPI is not running, and for MPI_THREAD_SINGLE.
  ThreadLevel() {
    check_running();
    check_mpi(MPI_Query_thread(&level_), "MPI_Query_thread");
    if (level_ == MPI_THREAD_SINGLE) {
      throw Error(
          explain({.what = "MPI was initialised for a program with one thread, and fanout's devices are threads",
                   .expected = "MPI_THREAD_FUNNELED or higher",
                   .found = "MPI_THREAD_SINGLE",
                   .advice = "call MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) instead of "
                             "MPI_Init(&argc, &argv)"}));
    }
  }

  /// Throws Error if MPI is not initialised, or has been finalised.
  static void check_running() {
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

  /// False at MPI_THREAD_FUNNELED.
  bool allows_any_thread() const noexcept { return level_ != MPI_THREAD_FUNNELED; }

  /// What a thread must lock while it uses MPI: `own`, if several threads may use MPI at the same time with different
  /// communicators. Otherwise all of this process share one.
  FairMutex& mutex(FairMutex& own) const {
    union Kept {  // never destroyed: a Ranks may be static
      Kept() noexcept : mutex() {}
      ~Kept() {}
      FairMutex mutex;
    };
    static Kept shared;
    return level_ == MPI_THREAD_MULTIPLE ? own : shared.mutex;
  }

  /// False on a thread that is not the main one, at MPI_THREAD_FUNNELED.
  bool allows_this_thread() const noexcept {
    int is_main = 0;
    return allows_any_thread() || (MPI_Is_thread_main(&is_main) == MPI_SUCCESS && is_main != 0);
  }

  /// Throws Error if this thread may not use MPI.
  void check_this_thread() const {
    if (allows_this_thread()) return;
    throw Error(explain({.what = "a thread that is not the main one used mpi::Ranks",
                         .expected = "the thread that initialised MPI, since its level is MPI_THREAD_FUNNELED",
                         .advice = "ask MPI_Init_thread for MPI_THREAD_SERIALIZED"}));
  }

  /// Throws Error if only the main thread may use MPI.
  void check_any_thread() const {
    if (allows_any_thread()) return;
    throw Error(explain({.what = "a call of all ranks would use MPI on a device's thread",
                         .expected = "MPI_THREAD_SERIALIZED or higher",
                         .found = "MPI_THREAD_FUNNELED",
                         .advice = "ask MPI_Init_thread for MPI_THREAD_SERIALIZED, or make no asynchronous calls and "
                                   "give each rank one device"}));
  }

 private:
  int level_ = MPI_THREAD_SINGLE;
};

}}}  // namespace fanout::v0::detail
