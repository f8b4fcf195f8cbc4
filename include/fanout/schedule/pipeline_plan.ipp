// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/schedule/pipeline_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>

namespace fanout { inline namespace v0 { namespace detail {

PipelinePlan make_pipeline_plan(const PipelineOptions& options, std::size_t rows,
                                const std::vector<CheckedSchedule::Stage>& stages) {
  const Plan batches = micro_batches(options, rows, stages.size());
  const CheckedSchedule schedule(options, stages, batches.size());
  PipelinePlan plan;
  plan.in_flight = std::min(batches.size(), in_flight(options, stages.size()));
  plan.schedule.orders = schedule.orders();
  for (const Shard& batch : batches) plan.micro_batches.push_back(batch.rows);
  for (std::size_t s = 0; s < stages.size(); ++s) plan.kept.push_back(schedule.kept(s));
  return plan;
}

}}}  // namespace fanout::v0::detail
