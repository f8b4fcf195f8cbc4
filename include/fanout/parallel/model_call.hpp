// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

#include <fanout/base/any_function.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/call/async_calls.hpp>
#include <fanout/call/call_outputs.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/call/copied_chain.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/call/pending.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/thread_hold.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/measure/call_clock.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/replica/replica_call.hpp>
#include <fanout/replica/replicate.hpp>
#include <fanout/replica/shard_body.hpp>
#include <fanout/replica/sharded_call.hpp>
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
  using Result = gathered_t<typename Call::R>;
  using Base = PendingCall<Result>;

 public:
  /// `failure` is the error of a call that could not be started. Such a call has no shards.
  ModelCall(Inputs&& inputs, const AnyReplicas& replicas, const CallSettings& settings, const CallStart& start,
            CallMeter&& meter, typename Call::Ranked&& ranked, std::exception_ptr failure)
      : Base(&replicas.original(), Call::is_one_task && failure == nullptr ? 1 : inputs.plan.size(), start.deadline),
        ranked_(std::move(ranked)),
        failure_(std::move(failure)),
        late_sink_(settings.late_sink == nullptr ? LateSink() : *settings.late_sink),
        inputs_(std::move(inputs)),
        devices_(replicas.size(), [&replicas](std::size_t i) noexcept { return replicas.devices().ids()[i]; }),
        chain_(current_call()),
        replicas_(replicas),
        settings_(with_own(settings)),
        start_(ranked_.moved(start)),
        meter_(std::move(meter)),
        outputs_(inputs_.plan, settings_, start_, devices_.data(), Call::shards_may_meet()) {
    if constexpr (!Call::is_one_task) {
      outputs_.make_slots();
      outputs_.tasks_are(CallRendezvous::tasks_of(static_cast<AsyncCall&>(*this)));
    }
  }

  /// Queues the tasks. Returns false if the call could not be started.
  template <class PendingCallsOf>
  bool post(PendingCallsOf& pending, SharedMutex& mutex) {
    if (failure_ != nullptr) return false;
    this->keep_in(pending.calls());
    this->calls()->post(*this, tasks_, replicas_.table(), mutex, pending.is_in_order(Call::order()));
    return true;
  }

 private:
  using LateSink = AnyFunction<void(const LateShard&)>;

  /// Copies the late sink, and leaves out what belongs to the model, which may be gone when the result is taken.
  CallSettings with_own(CallSettings settings) const noexcept {
    if (late_sink_) settings.late_sink = &late_sink_;
    settings.team = nullptr;
    settings.recovery = nullptr;
    return settings;
  }

  /// A call whose shards may run again is a WholeCall. It is a ModelCall if other processes make it, too, or if it
  /// keeps its place behind calls that change the replicas.
  static constexpr Rerun never_again{.refusal = &Call::refusal, .refusal_of_less = &Call::refusal_of_less};

  void run_shard(std::size_t task) noexcept override {
    if constexpr (Call::is_one_task) {
      run_all();
    } else {
      const ShardBody<Call, Args...> body(outputs_, false, replicas_, inputs_, scope_.innermost(), states_);
      body(task);
    }
  }

  void run_all() noexcept {
    const EnteredChain entered(chain_.innermost());
    using Sharded = ShardedCall<Call, Inputs>;
    try {
      [[maybe_unused]] const auto state = states_.enter();
      EarlyRoom<typename Sharded::Body> room;
      Sharded call(replicas_, replicas_.table(), inputs_, outputs_, room);
      call.dispatch();
      call.run_own();
      call.join();
      if constexpr (Call::combines_fields) {
        ranked_.join();
        call.combine(ranked_);
      }
    } catch (...) {
      failure_ = Call::combines_fields ? ranked_.failure() : std::current_exception();
    }
  }

  void tell_late() noexcept override {
    if constexpr (!Call::is_one_task) outputs_.tell_late();
  }

  Result take_result() override {
    [[maybe_unused]] const ThreadHolds<DeviceSet<Ds...>> held;
    ranked_.wait_anew();
    meter_.result_is_asked_for();
    try {
      if (failure_ != nullptr) std::rethrow_exception(failure_);
      if constexpr (!Call::is_one_task) outputs_.all_ended(never_again);
      if constexpr (!Call::combines_fields) {  // the thread that takes the result makes the steps with other processes
        ranked_.join();
        outputs_.check_deadline();
      }
      return outputs_.gather(ranked_);
    } catch (...) {
      ranked_.fail();
      throw;
    }
  }

  typename Call::Ranked ranked_;
  std::exception_ptr failure_;  // thrown when the call was started, or by run_all()
  LateSink late_sink_;
  Inputs inputs_;
  const InlineArray<DeviceId> devices_;
  const Plan one_task_{{.rows = {}, .device = 0}};
  const Plan& tasks_ = Call::is_one_task ? one_task_ : inputs_.plan;
  CopiedChain<CallScope> chain_;
  const AnyReplicas& replicas_;  // must not be used once all shards have ended
  const CallSettings settings_;
  CallStart start_;
  const CallMeter meter_;
  CallOutputs<typename Call::R> outputs_;
  const ShardsScope scope_{chain_.innermost(), outputs_.state().stop_at};
  const typename Call::States states_{};
};

}}}  // namespace fanout::v0::detail
