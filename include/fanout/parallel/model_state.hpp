// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/owned.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/call/async_calls.hpp>
#include <fanout/call/call_order.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/pending_calls.hpp>
#include <fanout/call/ranked_steps.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/measure/call_observer.hpp>
#include <fanout/model/original.hpp>
#include <fanout/model/slice_place.hpp>
#include <fanout/parallel/checked_options.hpp>
#include <fanout/parallel/options.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/recovery/recovery.hpp>
#include <fanout/replica/replicate.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/batch_shape.hpp>
#include <fanout/sync/atomic.hpp>
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
struct ModelState : CheckedOptions {
  using AllReplicas = typename ReplicasOn<M, Devices>::type;

  ModelState(M&& model, const Devices& devices, Options&& with)
      : CheckedOptions(std::move(with), DeviceTable(devices), times), replicas(std::move(model), devices) {
    settings.team = &replicas.table();
  }

  /// The plan of a call. A model with slices has one shard on each device, or throws InvalidArgument.
  Plan plan_call(const CountRows& count, bool on_all) const {
    if constexpr (has_slices<typename AllReplicas::model_type>) {
      return this->plan_on_each(count);
    } else {
      return this->plan(count, on_all);
    }
  }

  /// If the call may be made again with fewer rows: cuts the plan to those that fit into the devices' memories, and
  /// returns the plans of the next tries.
  template <class Call, class Inputs>
  [[gnu::cold, gnu::noinline]] Owned<LimitedPlans> limit(Inputs& inputs) const {
    if (!this->may_shrink() || Call::refusal(Again::with_fewer_rows) != nullptr) return {};
    return this->settings.recovers->limit(this->settings, inputs.plan, batch_shape(inputs.axis, inputs.arguments));
  }

  AllReplicas replicas;
  Original<M>& original = replicas.original();
  // What callers write is not in the cache lines that shards read.
  alignas(cores_apart) mutable SharedMutex mutex;
  mutable CallStatistics times;
  mutable RankedCalls ranked_calls{this->settings.ranks};  // after the replicas: one that throws takes no number
  alignas(cores_apart) mutable PendingCalls pending{&original, replicas.size()};  // last, so that it goes first
};

/// Keeps update() out as long as a call runs, and numbers the calls.
class EnteredModel {
 public:
  EnteredModel() noexcept = default;
  [[gnu::always_inline]] EnteredModel(SharedMutex& mutex, const void* original) { enter(mutex, original); }
  EnteredModel(const EnteredModel&) = delete;
  EnteredModel& operator=(const EnteredModel&) = delete;
  [[gnu::always_inline]] ~EnteredModel() { leave(); }

  /// Locks a model for a call. Must be called once, on an object that was made without a model. Throws Error from
  /// inside the model's own update().
  // Inlined, which g++ does not do by itself: 20 instructions of a call.
  [[gnu::always_inline]] void enter(SharedMutex& mutex, const void* original) {
    number_ = current_call() == nullptr ? mutex.lock_shared() : enter_from_inside(mutex, original);
    mutex_ = &mutex;
  }

  /// The number of calls that were made before this one. It wraps around.
  std::uint32_t number() const noexcept { return number_; }

  /// Ends the call. Does nothing if it has ended.
  [[gnu::always_inline]] void leave() noexcept {
    if (SharedMutex* const mutex = std::exchange(mutex_, nullptr)) mutex->unlock_shared();
  }
  /// Leaves the shared lock to an asynchronous call, which unlocks it when its shards have ended.
  void leave_to_others() noexcept { mutex_ = nullptr; }

 private:
  /// A call from inside the model's own forward does not wait for update(): the outer call holds the lock.
  [[gnu::noinline]] FANOUT_INLINE static std::uint32_t enter_from_inside(SharedMutex& mutex, const void* original);

  SharedMutex* mutex_ = nullptr;
  std::uint32_t number_ = 0;
};

/// All rows of the arguments: what a call of a model takes. A stage of a pipeline takes a MicroBatch instead.
struct WholeBatch {
  static constexpr bool is_whole = true;
  /// The steps of the call: see CallSteps.
  template <class Call, class State>
  static typename Call::Ranked steps(State& state) noexcept {
    return typename Call::Ranked(state.settings, state.ranked_calls, Call::shards_may_meet());
  }
  /// What its observers are told of it.
  static const MeasuredStart& measured(const MeasuredStart& call) noexcept { return call; }
  /// The rows that the call takes: all rows of its arguments.
  static const CountRows& count(const CountRows& arguments) noexcept { return arguments; }
  template <class State>
  [[gnu::always_inline]] static void enter(EnteredModel& entered, State& state, CallOrder order) {
    entered.enter(state.mutex, &state.original);
    state.pending.wait_for_earlier(order);
  }
};

template <class Model>
class StageCalls;

}  // namespace detail
}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/parallel/model_state.ipp>
#endif
