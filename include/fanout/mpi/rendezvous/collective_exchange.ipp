// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/collective_exchange.hpp>

#include <utility>

#include <fanout/base/cache_line.hpp>
#include <fanout/collective/rank_elements.hpp>

namespace fanout { inline namespace v0 { namespace detail {

CollectiveExchange::CollectiveExchange(std::vector<backend::Collective*> calls, std::size_t rank, std::size_t ranks)
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

MessageBlocks CollectiveExchange::first_to(std::size_t other) const {
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

MessageBlocks CollectiveExchange::first_from(std::size_t other) const {
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

void CollectiveExchange::combine() {
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

void CollectiveExchange::reduce(std::size_t i) {
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

MessageBlocks CollectiveExchange::slices(std::size_t rank) const {
  MessageBlocks blocks;
  for (const backend::Collective* const call : calls_) {
    if (call->kind != Kind::all_reduce || is_small(*call)) continue;
    const RowRange elements = range(*call, rank);
    blocks.add(at(call->to, elements.first, *call), elements.size() * call->type->size);
  }
  return blocks;
}

}}}  // namespace fanout::v0::detail
