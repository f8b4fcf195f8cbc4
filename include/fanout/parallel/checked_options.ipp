// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/parallel/checked_options.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

Plan CheckedOptions::plan(const CountRows& count, bool on_all) const {
  if (count.plan != nullptr) {
    check_sharded(*count.plan);
    return *count.plan;
  }
  if (count.rows) return plan(*count.rows);
  // A split policy may leave out devices if there are no rows.
  return on_all ? EvenSplit{}(0, device_count) : Plan{{.rows = {}, .device = 0}};
}

Plan CheckedOptions::plan_on_each(const CountRows& count) const {
  Plan wanted = EvenSplit{}(0, device_count);
  if (count.plan == nullptr ? !count.rows : *count.plan == wanted) return wanted;
  throw InvalidArgument(
      explain({.what = "a model with slices got an argument that is split by rows",
               .expected = Text() << "arguments for each of " << device_count << " devices as a whole",
               .found = count.plan != nullptr ? "an argument that is sharded as " + to_string(*count.plan)
                                              : std::to_string(count.rows.value_or(0)) + " rows",
               .advice = "pass broadcast(x)"}));
}

Plan CheckedOptions::plan_otherwise(std::size_t rows) const {
  Plan plan = options.split.observes() ? ((*measured).*measure_part()->plan)(rows, device_count)
                                       : options.split(rows, device_count);
  options.split.check(plan, rows, device_count);
  return settings.recovery == nullptr ? plan : settings.without_left_out(plan);
}

const MeasurePart* CheckedOptions::measure_part() const noexcept {
  if (options.split.observes()) return options.split.measures();
  if (options.progress.value()) return options.progress.part();
  return options.measure ? options.measure.part() : nullptr;
}

const RecoveryPart* CheckedOptions::recovery_part() const noexcept {
  if (options.retry.times > 0) return options.retry.times.part();
  return options.shrink_on_out_of_memory ? options.shrink_on_out_of_memory.part() : nullptr;
}

inline Options begun(Options&& options, const DeviceTable& devices) {
  options.split.begin(devices.ids(), devices.size());
  return std::move(options);
}

CheckedOptions::CheckedOptions(Options&& with, const DeviceTable& devices, CallStatistics& times)
    : options(begun(std::move(with), devices)),
      device_count(devices.size()),
      measured(measure_part() == nullptr ? Owned<MeasuredCalls>()
                                         : measure_part()->make(options.split, options.progress)),
      recovery(recovery_part() == nullptr ? Owned<Recovery>() : recovery_part()->make(device_count)),
      settings(check(devices, times)) {}

CheckedOptions::~CheckedOptions() = default;

CallSettings CheckedOptions::check(const DeviceTable& devices, CallStatistics& times) const {
  if (!options.split.is_even()) options.split.check(options.split(0, device_count), 0, device_count);
  const backend::Memory target = find_target(devices);
  if (options.retry.times < 0) {
    throw InvalidArgument(explain({.what = "a negative number of tries", .where = "Options::retry"}));
  }
  if (options.deadline.value().nanoseconds() < 0) {
    throw InvalidArgument(
        explain({.what = "a negative time", .where = "Options::deadline", .expected = "how long a call may take"}));
  }
  const backend::ProcessRanks* const ranks = options.ranks;
  const RecoveryPart* const recovers = recovery_part();
  return {.target = target,
          .axis = options.axis,
          .seed = options.seed,
          .rethrow_single = options.rethrow_single,
          .deals = recovers != nullptr ? recovers->deals : options.split.deals(),
          .deadlines = options.deadline.part(),
          .deadline = options.deadline,
          .late_sink = options.late ? &options.late : nullptr,
          .collectives = options.collectives,
          .ranked = options.ranks.part(),
          .ranks = ranks != nullptr && ranks->size() > 1 ? ranks : nullptr,
          .recovers = recovers,
          .retries = options.retry.times,
          .shrinks = options.shrink_on_out_of_memory,
          .recovery = recovery.get(),
          .times = &times,
          .gathers = true};
}

void CheckedOptions::check_sharded(const Plan& plan) const {
  for (const Shard& shard : plan) {
    if (shard.device < device_count) continue;
    throw InvalidArgument(explain({.what = "an argument is sharded over other devices than the model's",
                                   .expected = Text() << device_count << " devices or fewer",
                                   .found = to_string(plan),
                                   .advice = "gather() it first"}));
  }
}

backend::Memory CheckedOptions::find_target(const DeviceTable& devices) const {
  const DeviceId wanted = options.output.value_or(devices.ids()[0]);
  if (wanted.kind == host_memory.owner.kind) return {};
  Text known;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices.ids()[i] == wanted) return devices[i].memory;
    known << (i == 0 ? "" : ", ") << devices.ids()[i];
  }
  throw InvalidDeviceId(explain({.what = "Invalid device id",
                                 .where = "Options::output",
                                 .expected = Text() << "a device of the model (" << known << ") or the host",
                                 .found = to_string(wanted)}));
}

}}}  // namespace fanout::v0::detail
