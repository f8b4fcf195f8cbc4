// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/if_used.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/dispatch/copy_team.hpp>
#include <fanout/measure/call_observer.hpp>
#include <fanout/measure/measured_calls.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/parallel/call_request.hpp>
#include <fanout/parallel/options.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/recovery/recovery.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/waiting/call_statistics.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The options of a ParallelModel, checked for its devices, which give each call its plan and its settings. They do not
/// depend on the type of the model, so all models on a kind of device set share this code.
template <class Devices>
struct CheckedOptions {
  /// Throws InvalidDeviceId if no device has the memory for results. Throws InvalidArgument if the split does not fit
  /// the devices, and for a negative deadline. Borrows `times` and `team`.
  CheckedOptions(Options&& with, const Devices& devices, CallStatistics& times, const CopyTeam& team)
      : options(begun(std::move(with), devices)), device_count(devices.size()), settings(check(devices, times, team)) {}

  /// The plan of a call: that of its sharded arguments, otherwise that of its rows. A call without rows has one shard
  /// for the main device, or one for each device if the request is `on_all`.
  Plan plan(const CountRows& count, const CallRequest& request) const {
    if (count.plan != nullptr) {
      check_sharded(*count.plan);
      return *count.plan;
    }
    if (count.rows) return plan(*count.rows, request);
    // A split policy may leave out devices if there are no rows.
    return request.on_all ? EvenSplit{}(0, device_count) : Plan{{.rows = {}, .device = 0}};
  }
  Plan plan(std::size_t rows, const CallRequest& request = plain_request) const {
    if (options.split.is_even() && !recovery.changes_plans()) [[likely]]
      return EvenSplit{}(rows, device_count);
    return plan_otherwise(rows, request);
  }

  template <class S>
  S split_as() const {
    return measured->with_split([](const AnySplit& split) -> S {
      if (const S* const policy = split.get_if<S>()) return *policy;
      throw InvalidArgument(
          explain({.what = "split() of another type than the model's split policy", .expected = type_name<S>()}));
    });
  }

  /// What measured calls tell when they end. Null if only the process may measure them.
  CallObserver* observer() const noexcept { return observer_; }
  /// True if a call that begins now is measured, or may be made again. Reads one flag.
  bool needs_care() const noexcept { return needs_care_->load(MemoryOrder::relaxed); }

  /// True if shards of an asynchronous call may run again, or on other devices than planned.
  bool may_move_shards(const Plan& plan) const noexcept {
    return (settings.retries > 0 || settings.shrinks || !plan.is_ordinary()) && settings.ranks == nullptr;
  }

  CallStart start(const CallRequest& request, std::uint32_t number) const noexcept {
    CallStart start = CallStart::now(settings);
    start.clock = request.clock;
    start.number = number;
    start.targets = request.targets;
    start.target_count = request.target_count;
    if (request.begun != nullptr) [[unlikely]] {
      start.number = request.begun->number;
      start.deadline = request.begun->deadline;
    }
    return start;
  }

  Options options;
  std::size_t device_count;
  if_used_t<ModelMeasurements<>, Devices> measured{options.split, options.progress};
  mutable if_used_t<Recovery<>, Devices> recovery{device_count};
  const CallSettings settings;

 private:
  static Options begun(Options&& options, const Devices& devices) {
    options.split.begin(devices.ids().data(), devices.size());
    return std::move(options);
  }

  [[gnu::noinline]] Plan plan_otherwise(std::size_t rows, const CallRequest& request) const {
    Plan plan = options.split.observes() ? measured->plan(rows, device_count) : options.split(rows, device_count);
    check_plan(plan, rows, device_count);
    if (recovery.health().leaves_out()) plan = recovery.health().without_left_out(plan);
    if (request.is_limited && recovery.limits().exist()) {
      plan = recovery.limits().applied_to(plan, request.shape);
    }
    return plan;
  }

  static inline const Atomic<bool> always_{true};

  CallObserver* const observer_ =
      options.measure || options.progress || options.split.observes() ? measured.get() : nullptr;
  const Atomic<bool>* const needs_care_ =
      observer_ != nullptr || options.shrink_on_out_of_memory ? &always_ : &process_observer.flag();

  /// Called before the replicas are made, since a factory may take long.
  CallSettings check(const Devices& devices, CallStatistics& times, const CopyTeam& team) const {
    static_cast<void>(plan(0));
    if (options.retry.times < 0) {
      throw InvalidArgument(explain({.what = "a negative number of tries", .where = "Options::retry"}));
    }
    if (options.deadline.nanoseconds() < 0) {
      throw InvalidArgument(
          explain({.what = "a negative time", .where = "Options::deadline", .expected = "how long a call may take"}));
    }
    return {.target = find_target(devices),
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
            .team = &team,
            .gathers = true};
  }

  void check_sharded(const Plan& plan) const {
    for (const Shard& shard : plan) {
      if (shard.device < device_count) continue;
      throw InvalidArgument(explain({.what = "an argument is sharded over other devices than the model's",
                                     .expected = std::to_string(device_count) + " devices or fewer",
                                     .found = to_string(plan),
                                     .advice = "gather() it first"}));
    }
  }

  /// The memory in which results are gathered.
  backend::Memory find_target(const Devices& devices) const {
    const DeviceId wanted = options.output.value_or(devices.main_device());
    backend::Memory memory;
    if (wanted.kind == host_memory.owner.kind) return memory;
    std::string known;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const DeviceId& id = devices.ids()[i];
      if (id == wanted) {
        devices.visit(i, [&memory](const auto& device) { memory = device.memory(); });
        return memory;
      }
      known += (i == 0 ? "" : ", ") + to_string(id);
    }
    throw InvalidDeviceId(explain({.what = "Invalid device id",
                                   .where = "Options::output",
                                   .expected = "a device of the model (" + known + ") or the host",
                                   .found = to_string(wanted)}));
  }
};

}}}  // namespace fanout::v0::detail
