// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/messages.hpp>

namespace fanout { inline namespace v0 { namespace detail {

Messages::~Messages() {
  for (MPI_Request& request : open_) {
    if (request == MPI_REQUEST_NULL) continue;
    if (Ulfm::is_revoked(over_)) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
}

bool Messages::test() {
  if (open_.empty()) return true;
  int done = 0;
  check_mpi(MPI_Testall(static_cast<int>(open_.size()), open_.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  if (done != 0) clear();
  return done != 0;
}

bool Messages::give_up(std::size_t rank, int tag) {
  bool any = false;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (open_[i] == MPI_REQUEST_NULL || ends_[i].rank != rank || ends_[i].tag != tag) continue;
    int done = 0;
    check_mpi(MPI_Test(&open_[i], &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) continue;
    any = true;
    if (ends_[i].receives) {
      check_mpi(MPI_Cancel(&open_[i]), "MPI_Cancel");
      check_mpi(MPI_Wait(&open_[i], MPI_STATUS_IGNORE), "MPI_Wait");
    } else {
      check_mpi(MPI_Request_free(&open_[i]), "MPI_Request_free");
    }
  }
  return any;
}

}}}  // namespace fanout::v0::detail
