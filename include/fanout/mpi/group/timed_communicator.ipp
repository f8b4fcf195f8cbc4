// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/timed_communicator.hpp>

#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/ulfm.hpp>

namespace fanout { inline namespace v0 { namespace detail {

TimedCommunicator& TimedCommunicator::of(MPI_Comm users, std::unique_ptr<TimedCommunicator> memory) {
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

int TimedCommunicator::make_key() {
  int key = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr),
            "MPI_Comm_create_keyval");
  return key;
}

}}}  // namespace fanout::v0::detail
