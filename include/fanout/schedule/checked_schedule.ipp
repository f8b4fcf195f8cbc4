// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/schedule/checked_schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

inline constexpr const char* pass_names[] = {"forward", "backward", "weights"};

inline std::string name_of(const Schedule::Step& step) {
  return Text() << pass_names[static_cast<std::size_t>(step.pass)] << " of micro-batch " << step.micro_batch
                << " at stage " << step.stage;
}

[[noreturn, gnu::cold]] inline void refuse_schedule(const char* what, const std::string& expected,
                                                    const std::string& found) {
  throw InvalidArgument(
      explain({.what = what, .where = "PipelineOptions::schedule", .expected = expected, .found = found}));
}

/// The stages' devices as a schedule sees them.
inline std::vector<std::size_t> device_numbers(const std::vector<CheckedSchedule::Stage>& stages) {
  std::vector<DeviceId> found;
  std::vector<std::size_t> numbers;
  for (const CheckedSchedule::Stage& stage : stages) {
    const auto at = std::find(found.begin(), found.end(), stage.device);
    numbers.push_back(static_cast<std::size_t>(at - found.begin()));
    if (at == found.end()) found.push_back(stage.device);
  }
  return numbers;
}

CheckedSchedule::CheckedSchedule(const PipelineOptions& options, const std::vector<Stage>& stages,
                                 std::size_t micro_batches)
    : progress_(stages.size()), micro_batches_(micro_batches) {
  const Schedule::Shape shape{micro_batches, device_numbers(stages)};
  schedule_ = options.schedule ? options.schedule(shape) : OneForwardOneBackward{}(shape);
  check_steps(stages);
  check_end();
  if (options.in_flight != 0 && options.in_flight < kept(0)) {
    throw InvalidArgument(explain({.what = "the schedule needs more micro-batches in flight",
                                   .where = "PipelineOptions::in_flight",
                                   .expected = Text() << "at least " << kept(0) << ", or 0 for as many as it needs",
                                   .found = Text() << options.in_flight}));
  }
}

void CheckedSchedule::check_steps(const std::vector<Stage>& stages) {
  for (std::size_t order = 0; order < schedule_.orders.size(); ++order) {
    for (const Schedule::Step& step : schedule_.orders[order]) check_step(step, order, stages);
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::size_t pass = 0; pass < (has_weights(s) ? 3 : 2); ++pass) {
      const std::size_t next = progress_[s].passes[pass];
      if (next < micro_batches_) {
        refuse_schedule("a step is missing", "all steps of each stage",
                        "no " + name_of({s, next, static_cast<Schedule::Pass>(pass)}));
      }
    }
  }
}

void CheckedSchedule::check_step(const Schedule::Step& step, std::size_t order, const std::vector<Stage>& stages) {
  if (step.stage >= stages.size() || step.micro_batch >= micro_batches_ || step.pass > Schedule::Pass::weights) {
    refuse_schedule("there is no such step",
                    Text() << stages.size() << " stages and " << micro_batches_ << " micro-batches",
                    Text() << "stage " << step.stage << ", micro-batch " << step.micro_batch << ", pass "
                           << static_cast<std::size_t>(step.pass));
  }
  Progress& stage = progress_[step.stage];
  std::size_t& next = stage.passes[static_cast<std::size_t>(step.pass)];
  if (step.micro_batch != next) {
    refuse_schedule(
        "a stage does not take the micro-batches in order",
        next == micro_batches_ ? std::string("no further step of this pass") : name_of({step.stage, next, step.pass}),
        name_of(step));
  }
  ++next;
  if (step.pass == Schedule::Pass::weights) {
    stage.has_weights = true;
    if (!stages[step.stage].splits_backward) {
      refuse_schedule("a stage does not split backward", "stages with backward_input() and backward_weights()",
                      name_of(step));
    }
  }
  const auto is_of_order = [order](const Progress& other) { return other.order == order; };
  const auto first = std::find_if(progress_.begin(), progress_.end(), is_of_order);
  if (stage.order == ~std::size_t{0}) stage.order = order;
  if (stage.order != order) {
    refuse_schedule("a stage has steps in two orders", Text() << "all steps of stage " << step.stage << " in one",
                    Text() << "orders " << stage.order << " and " << order);
  }
  if (first == progress_.end()) return;
  const auto other = static_cast<std::size_t>(first - progress_.begin());
  if (!(stages[other].device == stages[step.stage].device)) {
    refuse_schedule("an order has stages on two devices", "stages with the same first device",
                    Text() << "stages " << other << " and " << step.stage);
  }
}

bool CheckedSchedule::may_run(const Schedule::Step& step) const noexcept {
  const auto done = [&](std::size_t stage, Schedule::Pass pass) {
    return progress_[stage].passes[static_cast<std::size_t>(pass)];
  };
  const std::size_t s = step.stage;
  switch (step.pass) {
    case Schedule::Pass::forward:
      return s == 0 || done(s - 1, Schedule::Pass::forward) > step.micro_batch;
    case Schedule::Pass::backward:
      return done(s, Schedule::Pass::forward) > step.micro_batch &&
             (s + 1 == progress_.size() || done(s + 1, Schedule::Pass::backward) > step.micro_batch);
    case Schedule::Pass::weights:
      return done(s, Schedule::Pass::backward) > step.micro_batch;
  }
  return false;
}

void CheckedSchedule::check_end() {
  for (Progress& stage : progress_) std::fill(std::begin(stage.passes), std::end(stage.passes), 0);
  std::vector<std::size_t> next(schedule_.orders.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t order = 0; order < next.size(); ++order) {
      const std::vector<Schedule::Step>& steps = schedule_.orders[order];
      for (; next[order] < steps.size() && may_run(steps[next[order]]); ++next[order]) {
        goes_on = true;
        Progress& stage = progress_[steps[next[order]].stage];
        ++stage.passes[static_cast<std::size_t>(steps[next[order]].pass)];
        const auto last = stage.has_weights ? Schedule::Pass::weights : Schedule::Pass::backward;
        stage.most_kept = std::max(stage.most_kept, stage.passes[0] - stage.passes[static_cast<std::size_t>(last)]);
      }
    }
  }
  for (std::size_t order = 0; order < next.size(); ++order) {
    const std::vector<Schedule::Step>& steps = schedule_.orders[order];
    if (next[order] < steps.size()) {
      refuse_schedule("the schedule cannot end", "each step after those that it waits for",
                      name_of(steps[next[order]]) + " waits for a step that comes after it");
    }
  }
}

}}}  // namespace fanout::v0::detail
