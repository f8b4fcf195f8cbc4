// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/schedule/checked_schedule.hpp>
#include <fanout/schedule/pipeline_options.hpp>
#include <fanout/schedule/schedule.hpp>

namespace fanout { inline namespace v0 {

/// What a Pipeline would do with a batch: see Pipeline::plan().
struct PipelinePlan {
  std::vector<RowRange> micro_batches = {};  ///< their rows in the batch
  std::size_t in_flight = 0;                 ///< of a call: how many micro-batches have begun and not ended, at most
  Schedule schedule = {};                    ///< of Pipeline::train()
  std::vector<std::size_t> kept = {};  ///< in train(): of how many micro-batches each stage keeps the state, at most
};

namespace detail {

FANOUT_INLINE PipelinePlan make_pipeline_plan(const PipelineOptions& options, std::size_t rows,
                                              const std::vector<CheckedSchedule::Stage>& stages);

}  // namespace detail
}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/schedule/pipeline_plan.ipp>
#endif
