// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <numeric>
#include <vector>

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What MPI does about ranks that were lost: its extension ULFM, of which only this header knows. MPICH 4 has the
/// functions too, but its launcher ends the job.
struct Ulfm {
  /// From now on functions on this communicator return errors. If the error is that a rank was lost, all exchanges of
  /// the communicator end: those of ranks that wait for others, too, which may not learn of it by themselves.
  static void revoke_if_lost(MPI_Comm communicator) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    check_mpi(MPI_Comm_create_errhandler(&note_error, &handler), "MPI_Comm_create_errhandler");
    const int status = MPI_Comm_set_errhandler(communicator, handler);
    MPI_Errhandler_free(&handler);
    check_mpi(status, "MPI_Comm_set_errhandler");
  }

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
  /// True if the MPI has ULFM, and the program was started with it.
  static bool is_enabled() {
    void* value = nullptr;
    int is_set = 0;
    check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &value, &is_set), "MPI_Comm_get_attr");
    return is_set != 0 && *static_cast<const int*>(value) != 0;
  }

  /// Ends all exchanges on a communicator, on all ranks, and all later ones: they return an error.
  static void revoke(MPI_Comm communicator) noexcept { MPIX_Comm_revoke(communicator); }

  static bool is_revoked(MPI_Comm communicator) noexcept {
    int is_so = 0;
    return MPIX_Comm_is_revoked(communicator, &is_so) == MPI_SUCCESS && is_so != 0;
  }

  /// A communicator of the ranks that are left, which all of them make together.
  static MPI_Comm shrink(MPI_Comm communicator) {
    MPI_Comm left = MPI_COMM_NULL;
    check_mpi(MPIX_Comm_shrink(communicator, &left), "MPIX_Comm_shrink");
    return left;
  }

  /// The ranks of a communicator that are known to be lost here.
  static std::vector<std::size_t> lost(MPI_Comm communicator) {
    MPI_Group failed = MPI_GROUP_NULL;
    MPI_Group all = MPI_GROUP_NULL;
    check_mpi(MPIX_Comm_get_failed(communicator, &failed), "MPIX_Comm_get_failed");
    check_mpi(MPI_Comm_group(communicator, &all), "MPI_Comm_group");
    int count = 0;
    check_mpi(MPI_Group_size(failed, &count), "MPI_Group_size");
    std::vector<int> in_failed(static_cast<std::size_t>(count));
    std::vector<int> in_all(in_failed.size());
    std::iota(in_failed.begin(), in_failed.end(), 0);
    check_mpi(MPI_Group_translate_ranks(failed, count, in_failed.data(), all, in_all.data()),
              "MPI_Group_translate_ranks");
    MPI_Group_free(&failed);
    MPI_Group_free(&all);
    return {in_all.begin(), in_all.end()};
  }

  /// True if a function returned this since a rank was lost.
  static bool is_loss(int code) noexcept {
    int kind = 0;
    return MPI_Error_class(code, &kind) == MPI_SUCCESS &&
           (kind == MPIX_ERR_PROC_FAILED || kind == MPIX_ERR_PROC_FAILED_PENDING || kind == MPIX_ERR_REVOKED);
  }
#else
  static bool is_enabled() noexcept { return false; }
  static void revoke(MPI_Comm) noexcept {}
  static bool is_revoked(MPI_Comm) noexcept { return false; }
  static MPI_Comm shrink(MPI_Comm) noexcept { return MPI_COMM_NULL; }
  static std::vector<std::size_t> lost(MPI_Comm) { return {}; }
  static bool is_loss(int) noexcept { return false; }
#endif

 private:
  static void note_error(MPI_Comm* communicator, int* code, ...) noexcept {
    if (is_loss(*code)) revoke(*communicator);
  }
};

}}}  // namespace fanout::v0::detail
