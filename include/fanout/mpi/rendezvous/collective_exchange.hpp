// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/host_collective.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/mpi/group/message_blocks.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The part of one rank in collectives that all ranks make together: which memory it sends to each other rank and
/// receives from it, first and second, and what it computes in between. Reductions combine the elements of all ranks in
/// their order. Of a large all_reduce, each rank reduces a slice, which it then sends to the others. Borrows the calls,
/// whose arrays are in host memory. combine() allocates nothing, since arrays are in flight then.
class CollectiveExchange {
 public:
  FANOUT_INLINE CollectiveExchange(std::vector<backend::Collective*> calls, std::size_t rank, std::size_t ranks);
  CollectiveExchange(const CollectiveExchange&) = delete;
  CollectiveExchange& operator=(const CollectiveExchange&) = delete;

  FANOUT_INLINE MessageBlocks first_to(std::size_t other) const;
  FANOUT_INLINE MessageBlocks first_from(std::size_t other) const;

  /// Call this when the first messages have ended.
  FANOUT_INLINE void combine();

  MessageBlocks second_to(std::size_t) const { return slices(rank_); }
  MessageBlocks second_from(std::size_t other) const { return slices(other); }

 private:
  using Kind = backend::Collective::Kind;
  static constexpr std::size_t small_bytes = 4096;  // such an all_reduce needs no second messages

  static bool is_small(const backend::Collective& call) noexcept { return call.bytes() <= small_bytes; }

  /// The elements that a rank reduces.
  RowRange range(const backend::Collective& call, std::size_t rank) const noexcept {
    if (call.kind == Kind::reduce_scatter) return {rank * call.count, (rank + 1) * call.count};
    if (call.kind == Kind::reduce) return {0, rank == call.root ? call.count : 0};
    return is_small(call) ? RowRange{0, call.count} : EvenParts(call.count, ranks_)[rank];
  }

  static std::byte* at(const void* data, std::size_t element, const backend::Collective& call) noexcept {
    return static_cast<std::byte*>(const_cast<void*>(data)) + element * call.type->size;
  }
  /// Where the elements of another rank for call i arrive.
  std::byte* received(std::size_t i, std::size_t other) const noexcept {
    return static_cast<std::byte*>(received_.data()) + (other < rank_ ? other : other - 1) * room_ + at_[i];
  }

  /// Reduces block by block: `to` may be where this rank's own elements are.
  FANOUT_INLINE void reduce(std::size_t i);

  FANOUT_INLINE MessageBlocks slices(std::size_t rank) const;

  std::vector<backend::Collective*> calls_;
  std::size_t rank_;
  std::size_t ranks_;
  std::vector<std::size_t> at_;  // where the elements for each call begin in what another rank sends
  std::size_t room_ = 0;         // for what one rank sends
  Storage received_;
  std::vector<const std::byte*> begins_;  // where a block of each rank's elements begins
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/collective_exchange.ipp>
#endif
