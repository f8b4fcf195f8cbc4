// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <vector>

#include <mpi.h>

#include <fanout/mpi/group/mpi_error.hpp>

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

}}}  // namespace fanout::v0::detail
