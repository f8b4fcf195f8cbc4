// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <vector>

#include <mpi.h>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Blocks of memory that travel as one message, without a copy. Borrows the memory. The sender's blocks need not be as
/// long as the receiver's: only the sum of their bytes is the same.
class MessageBlocks {
 public:
  FANOUT_INLINE void add(const void* data, std::size_t bytes);
  bool empty() const noexcept { return sizes_.empty(); }

  /// The MPI datatype of one message with all blocks, to be sent from MPI_BOTTOM.
  class Type {
   public:
    FANOUT_INLINE explicit Type(const MessageBlocks& blocks);
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

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/message_blocks.ipp>
#endif
