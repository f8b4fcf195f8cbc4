// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

#include <fanout/base/any_function.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/owned.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/call/async_calls.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_outputs.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/copied_chain.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/call/pending.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/thread_hold.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/measure/call_meter.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/parallel/model_state.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/recovery/recovery.hpp>
#include <fanout/replica/replica_call.hpp>
#include <fanout/replica/replicate.hpp>
#include <fanout/replica/shard_body.hpp>
#include <fanout/replica/sharded_call.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/shard_inputs.hpp>
#include <fanout/sync/shared_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// True for an rvalue reference, also inside of a tuple or another template.
template <class X>
inline constexpr bool refers_to_temporary = std::is_rvalue_reference_v<X>;
template <template <class...> class C, class... T>
inline constexpr bool refers_to_temporary<C<T...>> = (refers_to_temporary<T> || ...);

/// One asynchronous call of a model: its arguments, the results of its shards, and the scopes in which it was made.
template <class AnyReplicas, class Inputs>
class ModelCall;

template <class M, class... Ds, class... Args>
class ModelCall<Replicas<M, Ds...>, ShardInputs<Args...>> final
    : public PendingCall<gathered_t<typename CallOfReplicas<Replicas<M, Ds...>, ShardInputs<Args...>>::R>>,
      public Pooled {
  using AnyReplicas = Replicas<M, Ds...>;
  using Inputs = ShardInputs<Args...>;
  using Call = CallOfReplicas<AnyReplicas, Inputs>;
  using Sharded = ShardedCall<Call, Inputs>;
  using Result = gathered_t<typename Call::R>;
  using Base = PendingCall<Result>;

 public:
  /// `is_one_task`: a task of the main device makes the call as a whole, like a synchronous one, since its shards may
  /// run again or on other devices than planned, or fields are combined. `limits`: its plans if it may be made again.
  /// `failure`: the error if the call could not be planned, else null.
  ModelCall(Inputs&& inputs, const AnyReplicas& replicas, const CallSettings& settings, const CallRequest& request,
            CallMeter&& meter, typename Call::Ranked&& ranked, bool is_one_task, Owned<LimitedPlans>&& limits,
            std::exception_ptr failure)
      : Base(&replicas.original(), is_one_task ? 1 : inputs.plan.size()),
        is_one_task_(is_one_task),
        ranked_(std::move(ranked)),
        failure_(std::move(failure)),
        late_sink_(settings.late_sink == nullptr ? LateSink() : *settings.late_sink),
        inputs_(std::move(inputs)),
        devices_(replicas.size(), [&replicas](std::size_t i) noexcept { return replicas.devices().ids()[i]; }),
        chain_(current_call()),
        replicas_(replicas),
        settings_(with_own(settings)),
        meter_(std::move(meter)),
        limits_(std::move(limits)),
        outputs_(inputs_.plan, settings_, request, devices_.data(), Call::shards_may_meet()) {}

  /// Enters the model and begins the call. If that fails, the call has no shards, and throws the error when its result
  /// is taken.
  template <class State>
  void begin(State& state, EnteredModel& entered) noexcept {
    if (failure_ != nullptr) return this->never_runs();
    try {
      entered.enter(state.mutex, &state.original);
      settle_inputs(inputs_.arguments);
      outputs_.begin(entered.number(), meter_.clock());
      this->deadline_is(outputs_.deadline);
      scope_.emplace(chain_.innermost(), outputs_.stop_at);
      ranked_.begin(outputs_);
      if (is_one_task_) return;
      outputs_.make_slots();
      outputs_.rendezvous.tasks_are(CallRendezvous::tasks_of(static_cast<AsyncCall&>(*this)));
    } catch (...) {
      failure_ = ranked_.failure();
      this->never_runs();
    }
  }

  /// Queues the tasks. Returns false if the call could not be started.
  bool post(PendingCalls& pending, SharedMutex& mutex) {
    if (failure_ != nullptr) return false;
    this->keep_in(pending.calls());
    this->calls()->post(*this, tasks_, replicas_.table(), mutex, pending.is_in_order(Call::order()));
    return true;
  }

 private:
  using LateSink = AnyFunction<void(const LateShard&)>;

  static constexpr bool may_be_one_task = Call::is_one_task || Call::may_be_dealt;

  /// Copies the late sink, and leaves out what belongs to the model, which may be gone when the result is taken.
  CallSettings with_own(CallSettings settings) const noexcept {
    if (late_sink_) settings.late_sink = &late_sink_;
    settings.team = nullptr;
    if (!is_one_task_) settings.recovery = nullptr;
    return settings;
  }

  /// Shards never run again if they keep their places behind calls that change the replicas.
  static constexpr CallTypes never_again{.refusal = &Call::refusal, .renew = nullptr, .run = nullptr, .shape = nullptr};

  void run_shard(std::size_t task) noexcept override {
    if constexpr (may_be_one_task) {
      if (is_one_task_) return run_all();
    }
    if constexpr (!Call::is_one_task) {
      // NOLINTNEXTLINE(bugprone-unchecked-optional-access): begin() has made the scope
      const ShardBody<Call, Args...> body(outputs_, false, replicas_, inputs_, scope_->innermost(), states_);
      body(task);
    }
  }

  void run_all() noexcept {
    const EnteredScope entered(chain_.innermost());
    try {
      [[maybe_unused]] const auto state = states_.enter();
      if (settings_.recovery != nullptr && settings_.recovery->changes_plans().load(MemoryOrder::relaxed)) {
        plan_again();
        outputs_.again();
      }
      EarlyRoom<typename Sharded::Body> room;
      Sharded::run(replicas_, replicas_.table(), inputs_, outputs_, room, ranked_, [this] { plan_again(); });
    } catch (...) {
      failure_ = Call::combines_fields ? ranked_.failure() : std::current_exception();
    }
    settings_.recovery = nullptr;  // the model may go from now on
  }

  /// Plans the call anew, by what it and others have learnt since it was planned.
  void plan_again() {
    if (limits_) {
      inputs_.plan = settings_.within(*limits_);
    } else if (!has_sharded<Args...> && inputs_.plan.rows() != 0) {
      inputs_.plan = settings_.without_left_out(inputs_.plan);
    }
  }

  void tell_late() noexcept override {
    if (!is_one_task_) outputs_.tell_late();  // else the thread that makes the call tells them
  }

  Result take_result() override {
    [[maybe_unused]] const ThreadHolds<DeviceSet<Ds...>> held;
    ranked_.wait_anew();
    meter_.result_is_asked_for();
    try {
      if (failure_ != nullptr) std::rethrow_exception(failure_);
      if (!is_one_task_) static_cast<void>(outputs_.all_ended({&never_again, this}));
      return Sharded::gather(outputs_, ranked_);
    } catch (...) {
      ranked_.fail();
      throw;
    }
  }

  const bool is_one_task_;
  typename Call::Ranked ranked_;
  std::exception_ptr failure_;  // thrown when the call was started, or by run_all()
  LateSink late_sink_;
  Inputs inputs_;
  const InlineArray<DeviceId> devices_;
  const Plan one_task_{{.rows = {}, .device = 0}};
  const Plan& tasks_ = is_one_task_ ? one_task_ : inputs_.plan;
  CopiedChain<CallScope> chain_;
  const AnyReplicas& replicas_;  // must not be used once all shards have ended
  CallSettings settings_;
  const CallMeter meter_;
  const Owned<LimitedPlans> limits_;
  CallOutputs<typename Call::R> outputs_;
  std::optional<ShardsScope> scope_;  // made when the call begins
  const typename Call::States states_{};
};

/// Starts an asynchronous call of the model of a ModelState: plans it, makes it, and queues its shards. What fails is
/// thrown when the result is taken, except what moving the arguments throws, and std::bad_alloc.
template <class M, class Inputs, class State, class... Args>
auto start_call(State& state, const CallRequest& request, Args&&... args) {
  using AllReplicas = std::remove_reference_t<decltype(state.replicas)>;
  using Call = CallOfReplicas<AllReplicas, Inputs>;
  EnteredModel entered;
  CallMeter meter;
  meter.begin({.observer = state.measured.get(),
               .devices = state.replicas.table(),
               .model = type_name_view<M>(),
               .asynchronous = true});
  typename Call::Ranked ranked(state.settings, state.ranked_calls, Call::shards_may_meet());
  std::exception_ptr failure;
  Plan plan;
  try {
    if (Call::combines_fields || Call::shards_may_meet()) ranked.check_any_thread();
    plan = state.plan_call(count_rows(state.options.axis, args...), request.on_all);
  } catch (...) {
    failure = ranked.failure();
  }
  Inputs inputs{std::move(plan), {std::forward<Args>(args)...}, state.options.axis};
  bool is_one_task = Call::is_one_task;
  Owned<LimitedPlans> limits;
  if constexpr (Call::may_be_dealt) {
    if (failure == nullptr && state.may_move_shards(inputs.plan) && !Call::shards_may_meet()) [[unlikely]] {
      is_one_task = is_one_task || !state.pending.is_in_order(Call::order());
      if (is_one_task) limits = state.template limit<Call>(inputs);
    }
  }
  auto* call = make_pooled<ModelCall<AllReplicas, Inputs>>(std::move(inputs), state.replicas, state.settings, request,
                                                           std::move(meter), std::move(ranked), is_one_task,
                                                           std::move(limits), std::move(failure));
  Pending<gathered_t<typename Call::R>> pending(call);
  call->begin(state, entered);
  if (call->post(state.pending, state.mutex)) entered.leave_to_others();
  // A device's thread combines the fields over all ranks. All ranks must do that at the same place between the other
  // exchanges of their threads, so these do not go on before.
  if (Call::combines_fields && state.settings.ranks != nullptr) pending.wait();
  return pending;
}

}}}  // namespace fanout::v0::detail
