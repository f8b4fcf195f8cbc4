// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <variant>

#include <fanout/data/padded_like_torch.hpp>
#include <fanout/data/shuffle.hpp>
#include <fanout/memory/host_allocator.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// Options of a Loader. Each has a default: `Loader{dataset, {.batch = 128, .shuffle = Shuffle{.seed = 1}}}`.
struct LoaderOptions {
  /// The rows of a batch, at least 1. The last batch of an epoch may have fewer.
  std::size_t batch = 1;
  /// The order of the samples in each epoch; by default the order of the dataset.
  std::optional<Shuffle> shuffle = {};
  /// The threads that load batches, while the loop runs. 0: the loop's own thread loads each batch when it is asked
  /// for.
  int workers = 0;
  /// How many batches may be ready or in work at most, besides the one that the loop has; by default two for each
  /// worker. It bounds the memory. More workers than that have nothing to do. Without workers, nothing is prefetched.
  std::optional<int> prefetch = {};
  /// True: an epoch ends before a last batch that has fewer rows.
  bool drop_last = false;
  /// The memory of the batches' tensors: `.pin = fanout::cuda::pinned_memory` is page-locked, and GPUs copy from it
  /// without staging. Only for loaders that stack the samples themselves.
  backend::HostAllocator pin = {};
  /// The part of each epoch's order that this loader loads; by default all of it. A RowRange pads and drops no sample.
  std::variant<std::monostate, RowRange, PaddedLikeTorch> rows = {};

  /// One of `ranks` processes, whose loaders make each batch together: 0 <= rank < ranks.
  struct Share {
    std::size_t rank = 0;
    std::size_t ranks = 1;

    friend constexpr bool operator==(const Share&, const Share&) = default;
  };
  /// The part of each batch that this loader loads: `.share = {ranks.rank(), ranks.size()}`. `batch` counts the rows of
  /// all ranks, which get nearly equal parts. All have equally many batches, no sample is padded or dropped, and the
  /// samples of a batch do not depend on the number of ranks. A batch needs a row for each rank.
  Share share = {};
};

}}  // namespace fanout::v0
