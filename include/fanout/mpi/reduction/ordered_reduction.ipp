// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/reduction/ordered_reduction.hpp>

namespace fanout { inline namespace v0 { namespace detail {

OrderedReduction::OrderedReduction(const RankGroup& group, std::span<const backend::RankedValue> values) {
  if (GatheredReduction::fits(values)) {
    gathered_.emplace(group, values);
  } else {
    sliced_.emplace(group, values);
  }
}

void OrderedReduction::run(const std::vector<bool>& counts) {
  if (gathered_) {
    gathered_->run(counts);
  } else {
    sliced_->run(counts);
  }
}

}}}  // namespace fanout::v0::detail
