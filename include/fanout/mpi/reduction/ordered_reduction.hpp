// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <optional>
#include <span>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/reduction/gathered_reduction.hpp>
#include <fanout/mpi/reduction/sliced_reduction.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Combines values of all ranks in place: by messages with all values if they are few, else by slices. Both give
/// bitwise the same result, in the order of the ranks.
class OrderedReduction {
 public:
  /// Sends nothing yet. Borrows the values, which must be in host memory.
  FANOUT_INLINE OrderedReduction(const RankGroup& group, std::span<const backend::RankedValue> values);

  /// As SlicedReduction::run().
  FANOUT_INLINE void run(const std::vector<bool>& counts);

 private:
  std::optional<GatheredReduction> gathered_;
  std::optional<SlicedReduction> sliced_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/reduction/ordered_reduction.ipp>
#endif
