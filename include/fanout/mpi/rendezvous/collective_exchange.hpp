// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include <fanout/base/cache_line.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/host_collective.hpp>
#include <fanout/collective/rank_elements.hpp>
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
  CollectiveExchange(std::vector<backend::Collective*> calls, std::size_t rank, std::size_t ranks)
      : calls_(std::move(calls)), rank_(rank), ranks_(ranks) {
    for (const backend::Collective* const call : calls_) {
      at_.push_back(room_);
      if (!call->is_reduction()) continue;
      const std::size_t bytes = range(*call, rank).size() * call->type->size;
      room_ += (bytes + cache_line - 1) / cache_line * cache_line;
    }
    received_ = Storage(backend::Memory{}, room_ * (ranks - 1));
    begins_.resize(ranks);
  }
  CollectiveExchange(const CollectiveExchange&) = delete;
  CollectiveExchange& operator=(const CollectiveExchange&) = delete;

  MessageBlocks first_to(std::size_t other) const {
    MessageBlocks blocks;
    for (const backend::Collective* const call : calls_) {
      if (call->is_reduction()) {
        const RowRange elements = range(*call, other);
        blocks.add(at(call->from, elements.first, *call), elements.size() * call->type->size);
      } else if (call->kind == Kind::all_gather || (call->kind == Kind::broadcast && call->root == rank_)) {
        blocks.add(call->from, call->bytes());
      }
    }
    return blocks;
  }
  MessageBlocks first_from(std::size_t other) const {
    MessageBlocks blocks;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const backend::Collective& call = *calls_[i];
      if (call.is_reduction()) {
        blocks.add(received(i, other), range(call, rank_).size() * call.type->size);
      } else if (call.kind == Kind::all_gather) {
        blocks.add(at(call.to, other * call.count, call), call.bytes());
      } else if (call.kind == Kind::broadcast && call.root == other) {
        blocks.add(call.to, call.bytes());
      }
    }
    return blocks;
  }

  /// Call this when the first messages have ended.
  void combine() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const backend::Collective& call = *calls_[i];
      if (call.is_reduction()) {
        reduce(i);
      } else if (call.kind == Kind::all_gather) {
        copy_elements(at(call.to, rank_ * call.count, call), call.from, call.bytes());
      } else if (call.kind == Kind::broadcast && call.root == rank_) {
        copy_elements(call.to, call.from, call.bytes());
      }
    }
  }

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
  void reduce(std::size_t i) {
    const backend::Collective& call = *calls_[i];
    const RowRange elements = range(call, rank_);
    std::byte* const to = call.kind == Kind::reduce_scatter ? at(call.to, 0, call) : at(call.to, elements.first, call);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      begins_[rank] = rank == rank_ ? at(call.from, elements.first, call) : received(i, rank);
    }
    alignas(cache_line) std::byte block[small_bytes];
    const std::size_t most = sizeof(block) / call.type->size;
    for (std::size_t begin = 0; begin < elements.size(); begin += most) {
      const std::size_t count = elements.size() - begin < most ? elements.size() - begin : most;
      call.type->reduce(call.reduction, block, backend::RankElements::in(begins_), count);
      copy_elements(to + begin * call.type->size, block, count * call.type->size);
      for (const std::byte*& each : begins_) each += count * call.type->size;
    }
  }

  MessageBlocks slices(std::size_t rank) const {
    MessageBlocks blocks;
    for (const backend::Collective* const call : calls_) {
      if (call->kind != Kind::all_reduce || is_small(*call)) continue;
      const RowRange elements = range(*call, rank);
      blocks.add(at(call->to, elements.first, *call), elements.size() * call->type->size);
    }
    return blocks;
  }

  std::vector<backend::Collective*> calls_;
  std::size_t rank_;
  std::size_t ranks_;
  std::vector<std::size_t> at_;  // where the elements for each call begin in what another rank sends
  std::size_t room_ = 0;         // for what one rank sends
  Storage received_;
  std::vector<const std::byte*> begins_;  // where a block of each rank's elements begins
};

}}}  // namespace fanout::v0::detail
