// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <variant>

#include <fanout/data/padded_like_torch.hpp>
#include <fanout/data/shuffle.hpp>
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
  /// The part of each epoch's order that this loader loads; by default all of it. One of several processes takes
  /// `.rows = ranks.rows(dataset.size())`: no sample is padded or dropped, and together the ranks load each sample once.
  std::variant<std::monostate, RowRange, PaddedLikeTorch> rows = {};
};

}}  // namespace fanout::v0
