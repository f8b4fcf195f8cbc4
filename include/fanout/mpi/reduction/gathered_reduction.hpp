// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <mpi.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/mpi/group/rank_group.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Combines a few values of all ranks in place. Each rank gets the values of all ranks, and combines them in the order
/// of the ranks. The result is bitwise that of SlicedReduction, which sends more messages and fewer bytes. MPI may
/// gather as it likes, since it computes nothing. The values are in host memory, and the same on all ranks but for
/// their elements.
class GatheredReduction {
 public:
  /// True if these values are so few that sending messages takes longer than sending bytes.
  FANOUT_INLINE static bool fits(std::span<const backend::RankedValue> values) noexcept;

  /// Sends nothing yet. Borrows the values.
  FANOUT_INLINE GatheredReduction(const RankGroup& group, std::span<const backend::RankedValue> values);

  /// As SlicedReduction::run().
  FANOUT_INLINE void run(const std::vector<bool>& counts);

 private:
  static constexpr std::size_t largest = 1024;  // with 1,024 ranks that is 1 MiB for each of them
  static constexpr std::size_t boundary = backend::RankFold::largest_alignment;  // fits every type

  static std::size_t bytes_of(const backend::RankedValue& value) noexcept {
    return value.count * value.fold->element_size;
  }
  /// The first place from `at` on that fits the type: its alignment divides its size.
  static std::size_t begin_of(const backend::RankedValue& value, std::size_t at) noexcept {
    const std::size_t size = value.fold->element_size;
    const std::size_t alignment = std::min(boundary, size & (~size + 1));
    return (at + alignment - 1) / alignment * alignment;
  }
  std::size_t ranks() const noexcept { return static_cast<std::size_t>(group_.size()); }
  std::byte* of_rank(std::size_t rank) const noexcept {
    return static_cast<std::byte*>(received_.data()) + rank * room_;
  }

  FANOUT_INLINE void combine(const std::vector<bool>& counts);

  const RankGroup& group_;
  std::span<const backend::RankedValue> values_;
  bool may_throw_ = false;
  std::vector<std::size_t> at_;  // where each value begins in what one rank sends
  std::size_t room_ = 0;         // for the values of one rank
  Storage received_;
  std::vector<const void*> counting_;  // the elements of a value that are combined
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/reduction/gathered_reduction.ipp>
#endif
