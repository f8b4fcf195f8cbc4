// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/schedule/pipeline_options.hpp>
#include <fanout/schedule/schedule.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A schedule that comes to its end.
class CheckedSchedule {
 public:
  /// What it needs to know of a stage.
  struct Stage {
    DeviceId device;  ///< the first one
    bool splits_backward;
  };

  /// Makes the schedule of these options, and checks it. Throws InvalidArgument if it lacks a step or has it twice, if
  /// the steps of a pass of a stage are not in the order of the micro-batches, if steps wait for each other, if it has
  /// `weights` for a stage that does not split backward, and if it needs more micro-batches in flight than the options
  /// allow. Throws what the schedule throws.
  FANOUT_INLINE CheckedSchedule(const PipelineOptions& options, const std::vector<Stage>& stages,
                                std::size_t micro_batches);

  const std::vector<std::vector<Schedule::Step>>& orders() const noexcept { return schedule_.orders; }
  /// How many micro-batches this stage keeps at most: they have gone forward, but not back.
  std::size_t kept(std::size_t stage) const noexcept { return progress_[stage].most_kept; }
  /// True if `weights` of the stage is a step of its own, not a part of its `backward`.
  bool has_weights(std::size_t stage) const noexcept { return progress_[stage].has_weights; }

 private:
  struct Progress {
    std::size_t passes[3] = {};  // how many steps of each pass were found, or have run
    std::size_t order = ~std::size_t{0};
    std::size_t most_kept = 0;
    bool has_weights = false;
  };

  FANOUT_INLINE void check_steps(const std::vector<Stage>& stages);
  FANOUT_INLINE void check_step(const Schedule::Step& step, std::size_t order, const std::vector<Stage>& stages);
  FANOUT_INLINE void check_end();
  FANOUT_INLINE bool may_run(const Schedule::Step& step) const noexcept;

  Schedule schedule_;
  std::vector<Progress> progress_;  // of each stage
  std::size_t micro_batches_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/schedule/checked_schedule.ipp>
#endif
