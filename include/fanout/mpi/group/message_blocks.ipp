// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/message_blocks.hpp>

#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void MessageBlocks::add(const void* data, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(data);
  for (std::size_t at = 0; at < bytes; at += largest) {
    const std::size_t size = bytes - at < largest ? bytes - at : largest;
    MPI_Aint address = 0;
    check_mpi(MPI_Get_address(first + at, &address), "MPI_Get_address");
    addresses_.push_back(address);
    sizes_.push_back(static_cast<int>(size));
  }
}

MessageBlocks::Type::Type(const MessageBlocks& blocks) {
  check_mpi(MPI_Type_create_hindexed(static_cast<int>(blocks.sizes_.size()), blocks.sizes_.data(),
                                     blocks.addresses_.data(), MPI_BYTE, &type_),
            "MPI_Type_create_hindexed");
  if (const int status = MPI_Type_commit(&type_); status != MPI_SUCCESS) {
    MPI_Type_free(&type_);
    check_mpi(status, "MPI_Type_commit");
  }
}

}}}  // namespace fanout::v0::detail
