// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/parallel/checked_options.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>

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

Plan CheckedOptions::plan_otherwise(std::size_t rows) const {
  Plan plan = options.split.observes() ? measured->plan(rows, device_count) : options.split(rows, device_count);
  check_plan(plan, rows, device_count);
  return recovery.without_left_out(plan);
}

inline Options begun(Options&& options, const DeviceTable& devices) {
  options.split.begin(devices.ids(), devices.size());
  return std::move(options);
}

CheckedOptions::CheckedOptions(Options&& with, const DeviceTable& devices, CallStatistics& times)
    : options(begun(std::move(with), devices)), device_count(devices.size()), settings(check(devices, times)) {}

CheckedOptions::~CheckedOptions() = default;

CallSettings CheckedOptions::check(const DeviceTable& devices, CallStatistics& times) {
  static_cast<void>(plan(0));
  const backend::Memory target = find_target(devices);
  if (options.retry.times < 0) {
    throw InvalidArgument(explain({.what = "a negative number of tries", .where = "Options::retry"}));
  }
  if (options.deadline.nanoseconds() < 0) {
    throw InvalidArgument(
        explain({.what = "a negative time", .where = "Options::deadline", .expected = "how long a call may take"}));
  }
  return {.target = target,
          .axis = options.axis,
          .seed = options.seed,
          .rethrow_single = options.rethrow_single,
          .deadline = options.deadline,
          .late_sink = options.late ? &options.late : nullptr,
          .collectives = options.collectives,
          .ranks = options.ranks != nullptr && options.ranks->size() > 1 ? options.ranks : nullptr,
          .retries = options.retry.times,
          .shrinks = options.shrink_on_out_of_memory,
          .recovery = &recovery,
          .times = &times,
          .gathers = true};
}

void CheckedOptions::check_sharded(const Plan& plan) const {
  for (const Shard& shard : plan) {
    if (shard.device < device_count) continue;
    throw InvalidArgument(explain({.what = "an argument is sharded over other devices than the model's",
                                   .expected = std::to_string(device_count) + " devices or fewer",
                                   .found = to_string(plan),
                                   .advice = "gather() it first"}));
  }
}

backend::Memory CheckedOptions::find_target(const DeviceTable& devices) const {
  const DeviceId wanted = options.output.value_or(devices.ids()[0]);
  if (wanted.kind == host_memory.owner.kind) return {};
  std::string known;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices.ids()[i] == wanted) return devices[i].memory;
    known += (i == 0 ? "" : ", ") + to_string(devices.ids()[i]);
  }
  throw InvalidDeviceId(explain({.what = "Invalid device id",
                                 .where = "Options::output",
                                 .expected = "a device of the model (" + known + ") or the host",
                                 .found = to_string(wanted)}));
}

}}}  // namespace fanout::v0::detail
