// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/kept_messages.hpp>

#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void KeptMessages::send(Prepared& prepared, int to, int tag, MPI_Comm over) {
  const std::lock_guard<std::mutex> alone(mutex_);
  forget_sent();
  const auto message = prepared.messages_.begin();
  message->bytes = prepared.bytes_;
  messages_.splice(messages_.end(), prepared.messages_, message);
  const int status = MPI_Isend(message->bytes->data(), static_cast<int>(message->bytes->size()), MPI_BYTE, to, tag,
                               over, &message->request);
  if (status != MPI_SUCCESS) messages_.erase(message);
  check_mpi(status, "MPI_Isend");
}

void KeptMessages::forget_sent() noexcept {
  for (auto each = messages_.begin(); each != messages_.end();) {
    int sent = 0;
    // A status other than MPI_SUCCESS also ends the message: its rank is lost.
    const int status = MPI_Test(&each->request, &sent, MPI_STATUS_IGNORE);
    each = sent != 0 || status != MPI_SUCCESS ? messages_.erase(each) : std::next(each);
  }
}

}}}  // namespace fanout::v0::detail
