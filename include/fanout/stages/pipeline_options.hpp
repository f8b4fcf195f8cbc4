// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

namespace fanout { inline namespace v0 {

/// Options of a Pipeline, its first argument: `Pipeline{PipelineOptions{.micro_batches = 8}, stage(...), stage(...)}`.
struct PipelineOptions {
  /// How many parts a batch is cut into. A batch with fewer rows has one part for each row. By default four for each
  /// stage, and one if there is one stage: then each device is idle for at most a fifth of the time.
  std::size_t micro_batches = 0;
  /// How many micro-batches may have begun and not ended, at most: the memory that they take. By default twice the
  /// number of stages.
  std::size_t in_flight = 0;
};

}}  // namespace fanout::v0
