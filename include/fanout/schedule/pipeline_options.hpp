// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>

#include <fanout/base/any_function.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/schedule/schedule.hpp>

namespace fanout { inline namespace v0 {

/// Options of a Pipeline, its first argument: `Pipeline{PipelineOptions{.micro_batches = 8}, stage(...), stage(...)}`.
struct PipelineOptions {
  /// How many parts a batch is cut into. A batch with fewer rows has one part for each row. By default four for each
  /// stage, and one if there is one stage: then each device is idle for at most a fifth of the time.
  std::size_t micro_batches = 0;
  /// How many micro-batches may have begun and not ended, at most: the memory that they take. By default twice the
  /// number of stages. In training, as many as the schedule needs; fewer are refused.
  std::size_t in_flight = 0;
  /// How long a call or a step of training may take. By default there is no deadline. After it, steps that have not
  /// begun are left out, and ctx.stop_requested() is true in the others. When these have ended, the call throws a
  /// StageError that holds a Timeout, and names a step that began or ended too late. Must not be negative.
  Duration deadline = Duration::forever();
  /// The order of the steps of training: GPipe, OneForwardOneBackward, Interleaved, ZeroBubble, or a function of your
  /// own. By default OneForwardOneBackward.
  detail::AnyFunction<Schedule(const Schedule::Shape&)> schedule = {};
};

namespace detail {

/// The micro-batches of a batch. In this plan, the main device stands for all devices of a stage.
inline Plan micro_batches(const PipelineOptions& options, std::size_t rows, std::size_t stages) {
  const std::size_t wanted = options.micro_batches != 0 ? options.micro_batches : 4 * stages;
  Plan batches;
  for (const Shard& batch : EvenSplit{}(rows, std::max<std::size_t>(1, std::min(rows, wanted)))) {
    batches.add({.rows = batch.rows, .device = 0});
  }
  return batches;
}

/// Throws InvalidArgument for options that no pipeline has.
inline const PipelineOptions& checked(const PipelineOptions& options) {
  if (options.deadline.nanoseconds() >= 0) return options;
  throw InvalidArgument(explain(
      {.what = "a negative time", .where = "PipelineOptions::deadline", .expected = "how long a call may take"}));
}

/// How many micro-batches of a call may have begun and not ended.
inline std::size_t in_flight(const PipelineOptions& options, std::size_t stages) noexcept {
  return options.in_flight != 0 ? options.in_flight : 2 * stages;
}

}  // namespace detail

}}  // namespace fanout::v0
