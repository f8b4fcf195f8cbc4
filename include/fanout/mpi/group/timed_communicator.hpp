// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>
#include <memory>

#include <mpi.h>

#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/ulfm.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The communicator of the TimedExchanges of all groups over one communicator of the user, whose attribute it is. A
/// rank that came too late never receives what was sent to it, and may not know of that. MPI could give the place of a
/// freed communicator to another one, which would then receive it, and Open MPI hangs if only some ranks free one. So
/// this one is never freed.
struct TimedCommunicator {
  MPI_Comm over = MPI_COMM_NULL;

  /// The tag of the next group: all ranks make groups in the same order. Messages of another group are never received.
  int next_tag(int largest) noexcept { return static_cast<int>(groups++ % (static_cast<std::uint64_t>(largest) + 1)); }

  /// That of the user's communicator. All its ranks call this together. The first call takes over `memory`. Throws
  /// MpiError.
  static TimedCommunicator& of(MPI_Comm users, std::unique_ptr<TimedCommunicator> memory) {
    static const int key = make_key();
    void* found = nullptr;
    int is_there = 0;
    check_mpi(MPI_Comm_get_attr(users, key, &found, &is_there), "MPI_Comm_get_attr");
    if (is_there != 0) return *static_cast<TimedCommunicator*>(found);
    check_mpi(MPI_Comm_dup(users, &memory->over), "MPI_Comm_dup");
    Ulfm::revoke_if_lost(memory->over);
    check_mpi(MPI_Comm_set_attr(users, key, memory.get()), "MPI_Comm_set_attr");
    return *memory.release();
  }

 private:
  std::uint64_t groups = 0;

  static int make_key() {
    int key = MPI_KEYVAL_INVALID;
    check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr),
              "MPI_Comm_create_keyval");
    return key;
  }
};

}}}  // namespace fanout::v0::detail
