// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

namespace fanout { inline namespace v0 {

/// The rows that PyTorch's DistributedSampler gives to one of several processes: `.rows = PaddedLikeTorch{.rank = 1,
/// .ranks = 4}`. Rank r has the places r, r + ranks, r + 2 * ranks, ... of the order. All ranks have equally many, so
/// some samples come twice in an epoch if the number of samples is no multiple of `ranks`. A RowRange neither pads nor
/// drops.
struct PaddedLikeTorch {
  int rank = 0;
  int ranks = 1;

  friend constexpr bool operator==(const PaddedLikeTorch&, const PaddedLikeTorch&) = default;
};

}}  // namespace fanout::v0
