// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/memory/pool_allocator.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Elements of one value in a block.
struct ValuePart {
  const backend::RankFold* fold;
  std::byte* data;
  std::size_t count;
  std::size_t at;  ///< where they begin in the block's message, in bytes

  std::size_t bytes() const noexcept { return count * fold->element_size; }
};

/// Parts of values that travel as one message. One part is sent from its value and received there. Several parts are
/// packed one after the other. Borrows the parts.
class ValueBlock {
 public:
  ValueBlock(const ValuePart* begin, const ValuePart* end) noexcept : begin_(begin), end_(end) {}

  const ValuePart* begin() const noexcept { return begin_; }
  const ValuePart* end() const noexcept { return end_; }
  bool is_packed() const noexcept { return end_ - begin_ > 1; }
  std::size_t bytes() const noexcept { return end_[-1].at + end_[-1].bytes(); }  ///< of the message

  /// Where the message is received: `room`, if it is packed.
  std::byte* place(std::byte* room) const noexcept { return is_packed() ? room : begin_->data; }

  /// Returns place(room), and copies the parts there.
  std::byte* pack(std::byte* room) const {
    if (!is_packed()) return begin_->data;
    for (const ValuePart& part : *this) std::memcpy(room + part.at, part.data, part.bytes());
    return room;
  }
  /// Copies the parts from place(room).
  void unpack(const std::byte* room) const {
    if (!is_packed()) return;
    for (const ValuePart& part : *this) std::memcpy(part.data, room + part.at, part.bytes());
  }

 private:
  const ValuePart* begin_;
  const ValuePart* end_;
};

/// Cuts values into blocks of about equal size, and gives each rank as many of them, one after the other. So a large
/// value becomes many blocks, and many small values become one. Borrows the values.
class ValueBlocks {
 public:
  FANOUT_INLINE ValueBlocks(std::span<const backend::RankedValue> values, std::size_t ranks);
  ValueBlocks(const ValueBlocks&) = delete;
  ValueBlocks& operator=(const ValueBlocks&) = delete;

  /// The most blocks that a rank combines.
  std::size_t rounds() const noexcept { return slices_[0].size(); }
  /// True if the rank combines a block in this round.
  bool has(std::size_t rank, std::size_t round) const noexcept { return round < slices_[rank].size(); }
  ValueBlock of(std::size_t rank, std::size_t round) const noexcept { return block(slices_[rank].first + round); }

  std::size_t largest() const noexcept { return largest_; }  ///< the most bytes of a message
  bool any_packed() const noexcept { return any_packed_; }

 private:
  static constexpr std::size_t line = 64;
  /// What ranks send stays in the L2 cache until it is combined: half of this takes 100 MB and 3 MB 1.2 times as long.
  static constexpr std::size_t most = std::size_t{1} << 19;

  /// So that all ranks combine blocks in the same number of rounds.
  static constexpr std::size_t size_of_block(std::size_t all, std::size_t ranks) noexcept {
    const std::size_t each = all / ranks + 1;
    const std::size_t rounds = (each + most - 1) / most;
    return (each / rounds + line) / line * line;
  }

  FANOUT_INLINE void cut(std::span<const backend::RankedValue> values, std::size_t size);

  ValueBlock block(std::size_t i) const noexcept {
    return {parts_.data() + first_parts_[i], parts_.data() + first_parts_[i + 1]};
  }

  PoolVector<ValuePart> parts_;
  std::vector<std::size_t> first_parts_;  // of each block, then the number of parts
  EvenParts slices_{0, 1};                // the blocks of each rank
  std::size_t largest_ = 0;
  bool any_packed_ = false;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/reduction/value_blocks.ipp>
#endif
