// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <mpi.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/mpi/group/fair_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The level at which the user has initialised MPI, which says what threads may use it.
class ThreadLevel {
 public:
  /// Throws Error if MPI is not running, and for MPI_THREAD_SINGLE.
  FANOUT_INLINE ThreadLevel();

  /// Throws Error if MPI is not initialised, or has been finalised.
  FANOUT_INLINE static void check_running();

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
  FANOUT_INLINE void check_this_thread() const;

  /// Throws Error if only the main thread may use MPI.
  FANOUT_INLINE void check_any_thread() const;

 private:
  int level_ = MPI_THREAD_SINGLE;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/thread_level.ipp>
#endif
