// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>

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

  /// That of the user's communicator. All its ranks call this together. Throws MpiError.
  static TimedCommunicator& of(MPI_Comm users) {
    static const int key = make_key();
    void* found = nullptr;
    int is_there = 0;
    check_mpi(MPI_Comm_get_attr(users, key, &found, &is_there), "MPI_Comm_get_attr");
    if (is_there != 0) return *static_cast<TimedCommunicator*>(found);
    auto* const made = new TimedCommunicator;
    check_mpi(MPI_Comm_dup(users, &made->over), "MPI_Comm_dup");
    Ulfm::revoke_if_lost(made->over);
    check_mpi(MPI_Comm_set_attr(users, key, made), "MPI_Comm_set_attr");
    return *made;
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
