// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/collective/rank_elements.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/mpi/group/messages.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/reduction/value_blocks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Combines values of all ranks in place, in the order of the ranks. MPI only moves bytes, so no order depends on it.
/// The values are in host memory, and the same on all ranks but for their elements.
///
/// Rank r combines the r-th slice of all bytes, which it gets from all others, and sends them the result. So each byte
/// is sent twice, however many ranks there are. A slice travels in blocks, one in each round. While a block is
/// combined, the next one arrives.
///
/// Few values are one block, which all ranks send whole and combine whole: sending messages takes longer than sending
/// bytes. Each rank combines the same elements in the same order, so the bits are the same either way.
class OrderedReduction {
 public:
  /// Sends nothing yet. Borrows the values.
  FANOUT_INLINE OrderedReduction(const RankGroup& group, std::span<const backend::RankedValue> values);

  OrderedReduction(const OrderedReduction&) = delete;
  OrderedReduction& operator=(const OrderedReduction&) = delete;

  /// `counts[i]`: false if rank i has no rows, but another rank has. Waits for all ranks. If a rank cannot combine its
  /// slice, it throws its own exception after the last round, and the others throw an Error that names it. The values
  /// are unspecified then.
  FANOUT_INLINE void run(const std::vector<bool>& counts);

 private:
  static constexpr std::size_t boundary = backend::RankFold::largest_alignment;  // fits every type
  static constexpr std::size_t most_slots = 3;  // a round ends two rounds after its begin
  static constexpr std::size_t few = 1024;      // bytes; with 1,024 ranks, each of them gets 1 MiB

  FANOUT_INLINE static bool are_few(std::span<const backend::RankedValue> values) noexcept;

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

  /// Combines the only block, which each rank gets from all ranks. Returns why this rank could not.
  FANOUT_INLINE std::exception_ptr run_whole(const std::vector<bool>& counts);
  /// Combines the slices, in rounds. Returns why this rank could not.
  FANOUT_INLINE std::exception_ptr run_slices(const std::vector<bool>& counts);

  /// Begins a round: sends each rank a block of its slice.
  FANOUT_INLINE void send_slices(std::size_t round);

  FANOUT_INLINE void send_result(std::size_t round);

  /// Ends a round.
  FANOUT_INLINE void take_results(std::size_t round);

  /// Combines this rank's block of a round: each part over the first rank's elements, which are read first. A packed
  /// result is also put where it is sent from.
  FANOUT_INLINE void combine(std::size_t round, const std::vector<bool>& counts);

  /// Combines a part over the first counting rank's elements. Returns where the result is. `of(rank)` is where the
  /// elements of a rank begin.
  template <class Of>
  std::byte* combine(const ValuePart& part, const std::vector<bool>& counts, const Of& of) {
    counting_.clear();
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (part.fold->counts_empty || counts[rank]) counting_.push_back(of(rank));
    }
    part.fold->combine(counting_[0], backend::RankElements::in(counting_), part.count);
    if (counting_[0] != part.data) std::memcpy(part.data, counting_[0], part.bytes());
    return counting_[0];
  }

  const RankGroup& group_;
  std::size_t ranks_;
  std::size_t own_;
  bool is_whole_;  // the values are few
  ValueBlocks blocks_;
  std::size_t room_;        // bytes for one message
  bool may_throw_ = false;  // a rank may fail when it combines its slice
  Storage memory_;
  std::vector<Slot> slots_;
  std::vector<std::byte*> counting_;  // the elements of a part that are combined
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/reduction/ordered_reduction.ipp>
#endif
