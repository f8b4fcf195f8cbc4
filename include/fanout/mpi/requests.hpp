// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include <mpi.h>

#include <fanout/mpi/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Messages of bytes in flight. Borrows the communicator, and the memory until wait() returns. A message holds less than
/// 2^31 bytes.
class Requests {
 public:
  explicit Requests(MPI_Comm over) noexcept : over_(over) {}
  Requests(Requests&& other) noexcept : over_(other.over_), open_(std::move(other.open_)) { other.open_.clear(); }
  Requests& operator=(Requests&&) = delete;
  /// After an error, gives up the messages that are still in flight.
  ~Requests() {
    for (MPI_Request& request : open_) {
      if (request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }

  /// Messages between two ranks with one tag arrive in order.
  void send(const void* data, std::size_t bytes, std::size_t to, int tag) {
    MPI_Request& request = open_.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(to), tag, over_, &request),
              "MPI_Isend");
  }
  void receive(void* data, std::size_t bytes, std::size_t from, int tag) {
    MPI_Request& request = open_.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(from), tag, over_, &request),
              "MPI_Irecv");
  }

  /// Waits until all have been received, or may be overwritten.
  void wait() {
    check_mpi(MPI_Waitall(static_cast<int>(open_.size()), open_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    open_.clear();
  }

 private:
  MPI_Comm over_;
  std::vector<MPI_Request> open_;
};

}}}  // namespace fanout::v0::detail
