// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/call/async_calls.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/call/pending_calls.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/dispatch/copy_team.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/model/original.hpp>
#include <fanout/parallel/options.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/replica/replicate.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/shared_mutex.hpp>
#include <fanout/waiting/call_statistics.hpp>

namespace fanout { inline namespace v0 {

// The state of a ParallelModel, and what keeps its calls and updates apart.

namespace detail {

template <class M, class Devices>
struct ReplicasOn;
template <class M, class... Ds>
struct ReplicasOn<M, DeviceSet<Ds...>> {
  using type = Replicas<M, Ds...>;
};

/// The state of a ParallelModel.
template <class M, class Devices>
struct ModelState {
  using AllReplicas = typename ReplicasOn<M, Devices>::type;

  ModelState(M&& model, const Devices& devices, Options&& with)
      : options(std::move(with)), settings(check_options(devices)), replicas(std::move(model), devices) {}

  Plan plan(std::size_t rows) const { return plan(rows, replicas.size()); }
  Plan plan(std::size_t rows, std::size_t devices) const {
    Plan plan = options.split(rows, devices);
    if (!options.split.is_even()) check_plan(plan, rows, devices);
    return plan;
  }

  /// The plan of a call: that of its sharded arguments, otherwise that of its rows. A call without rows has one shard
  /// for the main device, or one for each device if `on_all`.
  Plan plan(const CountRows& count, bool on_all) const {
    if (count.plan != nullptr) {
      check_sharded(*count.plan);
      return *count.plan;
    }
    if (count.rows) return plan(*count.rows);
    // A split policy may leave out devices if there are no rows.
    return on_all ? EvenSplit{}(0, replicas.size()) : Plan{{.rows = {}, .device = 0}};
  }

  void check_sharded(const Plan& plan) const {
    for (const Shard& shard : plan) {
      if (shard.device < replicas.size()) continue;
      throw InvalidArgument(explain({.what = "an argument is sharded over other devices than the model's",
                                     .expected = std::to_string(replicas.size()) + " devices or fewer",
                                     .found = to_string(plan),
                                     .advice = "gather() it first"}));
    }
  }

  CallStart start(std::span<const OutputTarget> targets, std::uint32_t number) const noexcept {
    CallStart start = CallStart::now(settings);
    start.number = number;
    start.targets = targets.data();
    start.target_count = targets.size();
    return start;
  }

  /// Checks the options. Called before the replicas are made, since a factory may take long. Returns the settings of
  /// all calls.
  CallSettings check_options(const Devices& devices) const {
    static_cast<void>(plan(0, devices.size()));
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
            .times = &times,
            .team = &team};
  }

  /// The memory in which results are gathered.
  backend::Memory find_target(const Devices& devices) const {
    const DeviceId wanted = options.output.value_or(devices.main_device());
    if (wanted.kind == host_memory.owner.kind) return backend::Memory{};
    backend::Memory memory;
    bool found = false;
    std::string known;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      devices.visit(i, [&](const auto& device) {
        if (device.id() == wanted) {
          memory = device.memory();
          found = true;
        }
        known += (i == 0 ? "" : ", ") + to_string(device.id());
      });
    }
    if (!found) {
      throw InvalidDeviceId(explain({.what = "Invalid device id",
                                     .where = "Options::output",
                                     .expected = "a device of the model (" + known + ") or the host",
                                     .found = to_string(wanted)}));
    }
    return memory;
  }

  Options options;
  const CallSettings settings;
  AllReplicas replicas;
  Original<M>& original = replicas.original();
  const CopyTeam team{replicas.devices()};
  // What callers write is not in the cache lines that shards read.
  alignas(cores_apart) mutable SharedMutex mutex;
  mutable CallStatistics times;
  alignas(cores_apart) mutable PendingCalls<AsyncCalls> pending{&original,
                                                                replicas.size()};  // last, so that it goes first
};

/// Keeps update() out as long as a call runs, and numbers the calls.
template <class State>
class EnteredModel {
 public:
  EnteredModel() noexcept = default;
  explicit EnteredModel(const State& state) { enter(state); }
  EnteredModel(const EnteredModel&) = delete;
  EnteredModel& operator=(const EnteredModel&) = delete;
  ~EnteredModel() {
    if (state_ != nullptr) state_->mutex.unlock_shared();
  }

  /// Locks the model for a call. Must be called once, on an object that was made without a model. Throws Error from
  /// inside the model's own update().
  void enter(const State& state) {
    number_ = current_call() == nullptr ? state.mutex.lock_shared() : enter_from_inside(state);
    state_ = &state;
  }

  /// The number of calls that were made before this one. It wraps around.
  std::uint32_t number() const noexcept { return number_; }

  /// Leaves the shared lock to an asynchronous call, which unlocks it when its shards have ended.
  void leave_to_others() noexcept { state_ = nullptr; }

 private:
  /// A call from inside the model's own forward does not wait for update(): the outer call holds the lock.
  [[gnu::noinline]] static std::uint32_t enter_from_inside(const State& state) {
    const CallScope* const outer = find_original(current_call(), &state.original);
    if (outer != nullptr && outer->updating) {
      throw Error(explain(
          {.what = "a model was called from inside its own update", .advice = "call it after update() has returned"}));
    }
    return state.mutex.lock_shared_nested();
  }

  const State* state_ = nullptr;
  std::uint32_t number_ = 0;
};

/// Keeps calls out while the original is changed. Then increases its version.
template <class State>
class ModelUpdate {
 public:
  explicit ModelUpdate(State& state)
      : state_(state),
        scope_{.caller = current_call(), .original = &state.original, .updating = true},
        entered_(scope_),
        closed_(state.mutex, [&state]() noexcept { state.pending.help(); }) {
    // Calls have ended, but their work may still run on the devices, and read what `f` changes.
    for (std::size_t i = 0; i < state.replicas.size(); ++i) {
      state.replicas.devices().visit(i, [](const auto& device) { device.synchronize(); });
    }
  }
  ModelUpdate(const ModelUpdate&) = delete;
  ModelUpdate& operator=(const ModelUpdate&) = delete;
  ~ModelUpdate() {
    try {
      settle_model(state_.original.model, state_.replicas.devices());
    } catch (...) {  // a device that failed reports that at its next use
    }
    state_.original.version.fetch_add(1, MemoryOrder::release);
  }

 private:
  State& state_;
  CallScope scope_;
  EnteredScope entered_;
  ExclusiveLock closed_;  // last, so that it unlocks first, after the version has changed
};

}  // namespace detail
}}  // namespace fanout::v0
