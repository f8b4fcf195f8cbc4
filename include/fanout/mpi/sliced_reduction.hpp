// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include <fanout/collective/collective.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/mpi/messages.hpp>
#include <fanout/mpi/rank_group.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A part of a value: elements from `begin` on.
struct ValuePart {
  const backend::RankedValue* value;
  std::size_t begin;
  std::size_t count;

  std::size_t bytes() const noexcept { return count * value->fold->element_size; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(value->data) + begin * value->fold->element_size; }
};

/// Combines values of all ranks in place. Rank r combines the r-th slice of all bytes, which it gets from all others, in
/// the order of the ranks, and sends them the result. So each byte is sent twice, however many ranks there are, and no
/// order depends on the MPI. The values are in host memory, and the same on all ranks but for their elements.
class SlicedReduction {
 public:
  /// Sends nothing yet. Borrows the values.
  SlicedReduction(const RankGroup& group, std::vector<backend::RankedValue> values)
      : group_(group), own_(static_cast<std::size_t>(group.rank())), values_(std::move(values)) {
    for (const backend::RankedValue& value : values_) {
      bytes_ += value.count * value.fold->element_size;
      may_throw_ = may_throw_ || value.fold->may_throw;
    }
    mine_ = slice(own_);
    for (const ValuePart& part : mine_) {
      at_.push_back(room_);
      room_ += (part.bytes() + boundary - 1) / boundary * boundary;
    }
    received_ = Storage(backend::Memory{}, room_ * (ranks() - 1));
  }

  SlicedReduction(const SlicedReduction&) = delete;
  SlicedReduction& operator=(const SlicedReduction&) = delete;

  /// `counts[i]`: false if rank i has no rows, but another rank has. Waits for all ranks. If a rank cannot combine its
  /// slice, all ranks throw: this rank its own exception, the others an Error that names it.
  void run(const std::vector<bool>& counts) {
    exchange([this](std::size_t rank) { return blocks_of(slice(rank)); },
             [this](std::size_t rank) {
               MessageBlocks blocks;
               for (std::size_t i = 0; i < mine_.size(); ++i) blocks.add(part_of(i, rank), mine_[i].bytes());
               return blocks;
             });
    const std::exception_ptr failure = RankGroup::exception_of([&] {
      for (std::size_t i = 0; i < mine_.size(); ++i) combine(i, counts);
    });
    if (may_throw_) group_.agree(failure);
    exchange([this](std::size_t) { return blocks_of(mine_); },
             [this](std::size_t rank) { return blocks_of(slice(rank)); });
  }

 private:
  static constexpr std::size_t boundary = 64;  // fits every type

  std::size_t ranks() const noexcept { return static_cast<std::size_t>(group_.size()); }

  /// The elements of a rank for the i-th part of this rank's slice.
  std::byte* part_of(std::size_t i, std::size_t rank) const noexcept {
    if (rank == own_) return mine_[i].data();
    return static_cast<std::byte*>(received_.data()) + (rank < own_ ? rank : rank - 1) * room_ + at_[i];
  }

  /// The parts of all values that rank `rank` combines.
  std::vector<ValuePart> slice(std::size_t rank) const {
    const RowRange bytes = EvenParts(bytes_, ranks())[rank];
    std::vector<ValuePart> parts;
    std::size_t offset = 0;  // of the value in all bytes
    for (const backend::RankedValue& value : values_) {
      const std::size_t size = value.fold->element_size;
      // An element belongs to the slice with its first byte.
      const auto element_at = [&](std::size_t byte) {
        return byte <= offset ? 0 : std::min(value.count, (byte - offset + size - 1) / size);
      };
      const std::size_t begin = element_at(bytes.first);
      const std::size_t end = element_at(bytes.last);
      if (begin < end) parts.push_back({&value, begin, end - begin});
      offset += value.count * size;
    }
    return parts;
  }

  static MessageBlocks blocks_of(const std::vector<ValuePart>& parts) {
    MessageBlocks blocks;
    for (const ValuePart& part : parts) blocks.add(part.data(), part.bytes());
    return blocks;
  }

  /// Sends `sent(rank)` to each other rank, and receives `received(rank)` from it.
  template <class Sent, class Received>
  void exchange(const Sent& sent, const Received& received) const {
    Messages messages(group_.get());
    for (std::size_t step = 1; step < ranks(); ++step) {  // not all to the same rank at the same time
      const std::size_t before = (own_ + ranks() - step) % ranks();
      const std::size_t after = (own_ + step) % ranks();
      messages.receive(received(before), before);
      messages.send(sent(after), after);
    }
    messages.exchange();
  }

  /// Combines one part of this rank's slice.
  void combine(std::size_t i, const std::vector<bool>& counts) const {
    const ValuePart& part = mine_[i];
    const backend::RankFold& fold = *part.value->fold;
    std::vector<const void*> counting;
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (fold.counts_empty || counts[rank]) counting.push_back(part_of(i, rank));
    }
    const backend::RankElements elements{
        .from = [](const void* of, std::size_t at) { return (*static_cast<const std::vector<const void*>*>(of))[at]; },
        .of = &counting,
        .ranks = counting.size()};
    auto* const first = const_cast<void*>(counting[0]);
    fold.combine(first, elements, part.count);  // over the first rank's elements, which are read first
    if (first != part.data()) std::memcpy(part.data(), first, part.bytes());
  }

  const RankGroup& group_;
  std::size_t own_;
  std::vector<backend::RankedValue> values_;
  std::size_t bytes_ = 0;        // of all values
  bool may_throw_ = false;       // a rank may fail when it combines its slice
  std::vector<ValuePart> mine_;  // this rank's slice
  std::vector<std::size_t> at_;  // where each of its parts begins in what another rank sends
  std::size_t room_ = 0;         // for what one rank sends
  Storage received_;
};

}}}  // namespace fanout::v0::detail
