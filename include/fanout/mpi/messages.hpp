// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <deque>
#include <vector>

#include <mpi.h>

#include <fanout/mpi/mpi_error.hpp>
#include <fanout/mpi/ulfm.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Blocks of memory that travel as one message, without a copy. Borrows the memory. The sender's blocks need not be as
/// long as the receiver's: only the sum of their bytes is the same.
class MessageBlocks {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(data);
    for (std::size_t at = 0; at < bytes; at += largest) {
      const std::size_t size = bytes - at < largest ? bytes - at : largest;
      MPI_Aint address = 0;
      check_mpi(MPI_Get_address(first + at, &address), "MPI_Get_address");
      addresses_.push_back(address);
      sizes_.push_back(static_cast<int>(size));
    }
  }
  bool empty() const noexcept { return sizes_.empty(); }

  /// The MPI datatype of one message with all blocks, to be sent from MPI_BOTTOM.
  class Type {
   public:
    explicit Type(const MessageBlocks& blocks) {
      check_mpi(MPI_Type_create_hindexed(static_cast<int>(blocks.sizes_.size()), blocks.sizes_.data(),
                                         blocks.addresses_.data(), MPI_BYTE, &type_),
                "MPI_Type_create_hindexed");
      if (const int status = MPI_Type_commit(&type_); status != MPI_SUCCESS) {
        MPI_Type_free(&type_);
        check_mpi(status, "MPI_Type_commit");
      }
    }
    Type(const Type&) = delete;
    Type& operator=(const Type&) = delete;
    ~Type() { MPI_Type_free(&type_); }

    MPI_Datatype get() const noexcept { return type_; }

   private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
  };

 private:
  static constexpr std::size_t largest = std::size_t{1} << 30;  // MPI 3 counts in ints

  std::vector<int> sizes_;
  std::vector<MPI_Aint> addresses_;
};

/// Messages between this rank and others, at most one to and one from each. Borrows the communicator and the memory.
class Messages {
 public:
  explicit Messages(MPI_Comm over) noexcept : over_(over) {}

  void send(const MessageBlocks& blocks, std::size_t to) { add(blocks, to, true); }
  void receive(const MessageBlocks& blocks, std::size_t from) { add(blocks, from, false); }

  /// Exchanges them, and waits until they have been received, or may be overwritten.
  void exchange() {
    OpenRequests open{over_};
    std::vector<MPI_Request>& requests = open.requests;
    requests.reserve(messages_.size());
    for (const Message& message : messages_) {
      MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
      if (message.sent) {
        check_mpi(MPI_Isend(MPI_BOTTOM, 1, message.type.get(), message.rank, tag, over_, &request), "MPI_Isend");
      } else {
        check_mpi(MPI_Irecv(MPI_BOTTOM, 1, message.type.get(), message.rank, tag, over_, &request), "MPI_Irecv");
      }
    }
    check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }

 private:
  static constexpr int tag = 0;  // messages between two ranks stay in order

  /// If a rank was lost, waits until MPI uses no memory of the messages any more.
  struct OpenRequests {
    explicit OpenRequests(MPI_Comm communicator) noexcept : over(communicator) {}
    OpenRequests(const OpenRequests&) = delete;
    OpenRequests& operator=(const OpenRequests&) = delete;
    ~OpenRequests() {
      for (MPI_Request& request : requests) {
        if (request != MPI_REQUEST_NULL && Ulfm::is_revoked(over)) MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
    }

    MPI_Comm over;
    std::vector<MPI_Request> requests;
  };

  struct Message {
    Message(const MessageBlocks& blocks, int with, bool is_sent) : type(blocks), rank(with), sent(is_sent) {}
    MessageBlocks::Type type;
    int rank;
    bool sent;
  };

  void add(const MessageBlocks& blocks, std::size_t rank, bool sent) {
    if (!blocks.empty()) messages_.emplace_back(blocks, static_cast<int>(rank), sent);
  }

  MPI_Comm over_;
  std::deque<Message> messages_;
};

}}}  // namespace fanout::v0::detail
