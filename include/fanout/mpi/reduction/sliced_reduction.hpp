// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include <fanout/collective/process_ranks.hpp>
#include <fanout/collective/rank_elements.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/mpi/group/messages.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/reduction/value_blocks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Combines values of all ranks in place. Rank r combines the r-th slice of all bytes, which it gets from all others,
/// in the order of the ranks, and sends them the result. So each byte is sent twice, however many ranks there are, and
/// no order depends on the MPI. The values are in host memory, and the same on all ranks but for their elements.
///
/// A slice travels in blocks, one in each round. While a block is combined, the next one arrives.
class SlicedReduction {
 public:
  /// Sends nothing yet. Borrows the values.
  SlicedReduction(const RankGroup& group, std::span<const backend::RankedValue> values)
      : group_(group),
        ranks_(static_cast<std::size_t>(group.size())),
        own_(static_cast<std::size_t>(group.rank())),
        blocks_(values, ranks_),
        room_((blocks_.largest() + boundary - 1) / boundary * boundary) {
    for (const backend::RankedValue& value : values) may_throw_ = may_throw_ || value.fold->may_throw;
    const std::size_t slots = std::min(most_slots, blocks_.rounds());
    const std::size_t rooms = blocks_.any_packed() ? 2 * ranks_ : ranks_;
    counting_.reserve(ranks_);
    memory_ = Storage(backend::Memory{}, slots * rooms * room_);
    for (std::size_t i = 0; i < slots; ++i) {
      auto* const first = static_cast<std::byte*>(memory_.data()) + i * rooms * room_;
      slots_.push_back({Messages(group_.get(), 2 * ranks_), first, first + ranks_ * room_});
    }
  }

  SlicedReduction(const SlicedReduction&) = delete;
  SlicedReduction& operator=(const SlicedReduction&) = delete;

  /// `counts[i]`: false if rank i has no rows, but another rank has. Waits for all ranks. If a rank cannot combine its
  /// slice, it throws its own exception after the last round, and the others throw an Error that names it. The values
  /// are unspecified then.
  void run(const std::vector<bool>& counts) {
    std::exception_ptr failure;
    const std::size_t rounds = blocks_.rounds();
    for (std::size_t round = 0; round < rounds + 2; ++round) {
      if (round < rounds) send_slices(round);
      if (round >= 1 && round - 1 < rounds) {
        slot(round - 1).messages.wait();
        if (failure == nullptr) failure = RankGroup::exception_of([&] { combine(round - 1, counts); });
        send_result(round - 1);
      }
      if (round >= 2) take_results(round - 2);
    }
    if (may_throw_) group_.agree(failure);
  }

 private:
  static constexpr std::size_t boundary = backend::RankFold::largest_alignment;  // fits every type
  static constexpr std::size_t most_slots = 3;  // a round ends two rounds after its begin

  /// What a round needs until it ends.
  struct Slot {
    Messages messages;
    std::byte* slices;   // a room for what each rank sends of this rank's slice, then for a packed result
    std::byte* results;  // the same for packed blocks of other ranks' slices
  };

  Slot& slot(std::size_t round) noexcept { return slots_[round % most_slots]; }
  std::byte* slice_of(Slot& in, std::size_t rank) const noexcept { return in.slices + rank * room_; }
  std::byte* result_of(Slot& in, std::size_t rank) const noexcept { return in.results + rank * room_; }
  /// Where this rank sends its packed result from: the room of the first other rank's block. A room that only the
  /// result is written to would make combining small parts take four times as long.
  std::byte* own_result(Slot& in) const noexcept { return slice_of(in, own_ == 0 ? 1 : 0); }

  template <class F>
  void for_each_other(const F& f) const {
    for (std::size_t step = 1; step < ranks_; ++step) {  // not all to the same rank at the same time
      f((own_ + ranks_ - step) % ranks_, (own_ + step) % ranks_);
    }
  }

  /// Begins a round: sends each rank a block of its slice.
  void send_slices(std::size_t round) {
    Slot& in = slot(round);
    for_each_other([&](std::size_t before, std::size_t after) {
      if (blocks_.has(own_, round)) {
        in.messages.receive(slice_of(in, before), blocks_.of(own_, round).bytes(), before, MessageTag::slices);
      }
      if (blocks_.has(after, round)) {
        const ValueBlock block = blocks_.of(after, round);
        in.messages.send(block.pack(result_of(in, after)), block.bytes(), after, MessageTag::slices);
      }
    });
  }

  void send_result(std::size_t round) {
    Slot& in = slot(round);
    for_each_other([&](std::size_t before, std::size_t after) {
      if (blocks_.has(before, round)) {
        const ValueBlock block = blocks_.of(before, round);
        in.messages.receive(block.place(result_of(in, before)), block.bytes(), before, MessageTag::slice_results);
      }
      if (blocks_.has(own_, round)) {
        const ValueBlock block = blocks_.of(own_, round);
        in.messages.send(block.place(own_result(in)), block.bytes(), after, MessageTag::slice_results);
      }
    });
  }

  /// Ends a round.
  void take_results(std::size_t round) {
    Slot& in = slot(round);
    in.messages.wait();
    for_each_other([&](std::size_t before, std::size_t) {
      if (blocks_.has(before, round)) blocks_.of(before, round).unpack(result_of(in, before));
    });
  }

  /// Combines this rank's block of a round: each part over the first rank's elements, which are read first. A packed
  /// result is also put where it is sent from.
  void combine(std::size_t round, const std::vector<bool>& counts) {
    if (!blocks_.has(own_, round)) return;
    Slot& in = slot(round);
    const ValueBlock block = blocks_.of(own_, round);
    for (const ValuePart& part : block) {
      counting_.clear();
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        if (!part.fold->counts_empty && !counts[rank]) continue;
        counting_.push_back(rank == own_ ? part.data : slice_of(in, rank) + part.at);
      }
      std::byte* const to = counting_[0];
      part.fold->combine(to, backend::RankElements::in(counting_), part.count);
      if (to != part.data) std::memcpy(part.data, to, part.bytes());
      if (!block.is_packed() || ranks_ == 1) continue;
      std::byte* const sent = own_result(in) + part.at;
      if (to != sent) std::memcpy(sent, to, part.bytes());
    }
  }

  const RankGroup& group_;
  std::size_t ranks_;
  std::size_t own_;
  ValueBlocks blocks_;
  std::size_t room_;        // bytes for one message
  bool may_throw_ = false;  // a rank may fail when it combines its slice
  Storage memory_;
  std::vector<Slot> slots_;
  std::vector<std::byte*> counting_;  // the elements of a part that are combined
};

}}}  // namespace fanout::v0::detail
