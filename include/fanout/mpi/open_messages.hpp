// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <vector>

#include <mpi.h>

#include <fanout/mpi/messages.hpp>
#include <fanout/mpi/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Messages that have been started. They need test() to make progress, so one thread can drive many. Borrows the
/// communicator and the memory, which must stay until all have ended.
class OpenMessages {
 public:
  void send(MPI_Comm over, const MessageBlocks& blocks, int to, int tag) {
    start(blocks, [&](MPI_Datatype type, MPI_Request* request) {
      check_mpi(MPI_Isend(MPI_BOTTOM, 1, type, to, tag, over, request), "MPI_Isend");
    });
  }
  void receive(MPI_Comm over, const MessageBlocks& blocks, int from, int tag) {
    start(blocks, [&](MPI_Datatype type, MPI_Request* request) {
      check_mpi(MPI_Irecv(MPI_BOTTOM, 1, type, from, tag, over, request), "MPI_Irecv");
    });
  }

  /// True if all have ended. Does not wait.
  bool test() {
    if (open_.empty()) return true;
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(open_.size()), open_.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (done != 0) open_.clear();
    return done != 0;
  }

 private:
  template <class Start>
  void start(const MessageBlocks& blocks, const Start& start_message) {
    if (blocks.empty()) return;
    const MessageBlocks::Type type(blocks);  // MPI keeps what a started message needs of it
    MPI_Request request = MPI_REQUEST_NULL;
    open_.reserve(open_.size() + 1);
    start_message(type.get(), &request);
    open_.push_back(request);
  }

  std::vector<MPI_Request> open_;
};

}}}  // namespace fanout::v0::detail
