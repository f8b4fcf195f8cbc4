// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/any_function.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/slot.hpp>
#include <fanout/parallel/apply.hpp>
#include <fanout/parallel/call_chain.hpp>
#include <fanout/parallel/call_frame.hpp>
#include <fanout/parallel/call_order.hpp>
#include <fanout/parallel/caller_state.hpp>
#include <fanout/parallel/combined_fields.hpp>
#include <fanout/parallel/forward_result.hpp>
#include <fanout/parallel/gather.hpp>
#include <fanout/parallel/late_shard.hpp>
#include <fanout/parallel/pending.hpp>
#include <fanout/parallel/replicate.hpp>
#include <fanout/parallel/shard_inputs.hpp>
#include <fanout/parallel/shard_outputs.hpp>
#include <fanout/parallel/shard_slot.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/gate.hpp>

namespace fanout::inline v0 {

namespace detail {

/// The chain of calls, of CallLinks, that an asynchronous call is made from inside of, for as long as that call takes.
/// What the original's links stand for may have ended by then.
template <class Link>
class CopiedChain {
 public:
  explicit CopiedChain(const Link* from)
      : links_(count(from), [this, &from](std::size_t i) {
          Link link = *from;
          link.caller = link.caller == nullptr ? nullptr : links_.data() + i + 1;
          link.copied = true;
          from = from->caller;
          return link;
        }) {}

  const Link* innermost() const noexcept { return links_.size() == 0 ? nullptr : links_.data(); }

 private:
  static std::size_t count(const Link* link) noexcept {
    std::size_t links = 0;
    for (; link != nullptr; link = link->caller) ++links;
    return links;
  }

  InlineArray<Link, 1> links_;
};

template <class X>
inline constexpr bool refers_to_temporary = std::is_rvalue_reference_v<X>;
template <template <class...> class C, class... T>
inline constexpr bool refers_to_temporary<C<T...>> = (refers_to_temporary<T> || ...);

/// What a call of a model with these inputs is.
template <class AnyReplicas, class Inputs>
struct ModelCallTraits;
template <class M, class... Ds, class Inputs>
struct ModelCallTraits<Replicas<M, Ds...>, Inputs> {
  using Taken = PiecesTaken<Inputs, Replica<M, Ds>...>;
  using Forward = ForwardResult<typename Taken::type, Replica<M, Ds>...>;
  using R = typename Forward::type;  ///< what a shard returns
  using Result = gathered_t<R>;
  using States = CallerStates<typename Replica<M, Ds>::model_type...>;
  static constexpr CallOrder order() { return Forward::order(); }

  /// Where fields are combined after a call, nothing of the next one may run before that: such a call is one task,
  /// which makes the call.
  static constexpr bool is_one_task = has_combined_fields<typename Replicas<M, Ds...>::model_type>;

  /// Whether its shards may wait for each other, each with a replica for itself. If two such calls had them in another
  /// order on one replica than on another, both would wait for ever; so they are kept in order as asynchronous calls
  /// are.
  static constexpr bool may_need_order() {
    if constexpr (order() == CallOrder::changes && !is_one_task) {
      return Forward::takes_context();
    } else {
      return false;
    }
  }
};

/// Makes a link, or none, the innermost one of this thread for as long as this lives.
class EnteredChain {
 public:
  explicit EnteredChain(const CallLink* innermost) noexcept : before_(detail::exchange(current_link(), innermost)) {}
  EnteredChain(const EnteredChain&) = delete;
  EnteredChain& operator=(const EnteredChain&) = delete;
  ~EnteredChain() { current_link() = before_; }

 private:
  const CallLink* before_;
};

/// One asynchronous call of a model: its arguments, what its shards have returned, and what it was made from inside of.
template <class AnyReplicas, class Inputs>
class ModelCall : public PendingCall<typename ModelCallTraits<AnyReplicas, Inputs>::Result>, public Pooled {
  using Traits = ModelCallTraits<AnyReplicas, Inputs>;
  using R = typename Traits::R;
  using Result = typename Traits::Result;
  using Base = PendingCall<Result>;

 public:
  /// Of no shards if it has failed.
  ModelCall(Inputs&& inputs, const AnyReplicas& replicas, const CallSettings& settings, std::exception_ptr failure)
      : Base(Traits::is_one_task && failure == nullptr ? 1 : inputs.plan.size(), operations, settings.deadline),
        failure_(std::move(failure)),
        late_sink_(settings.late_sink == nullptr ? LateSink() : *settings.late_sink),
        settings_(settings),
        inputs_(std::move(inputs)),
        chain_(current_link()),
        replicas_(replicas) {
    if (late_sink_) settings_.late_sink = &late_sink_;
    settings_.crew = nullptr;  // the model's, which may be gone, too
    if constexpr (!Traits::is_one_task) {
      outputs_.fill([&] { return ShardOutputs<R>(inputs_.plan, settings_, replicas.devices().ids()); });
      outputs_.value().tasks_are(
          {.take_back = [](void* self) noexcept { return static_cast<AsyncCall*>(self)->take_back(); },
           .from = static_cast<AsyncCall*>(this)});
    }
    this->original = &replicas.original();
    this->take = &take_result;
    this->destroy = [](Base* self) noexcept { delete static_cast<ModelCall*>(self); };
  }

  /// Queues its tasks, unless it has failed. True if it did.
  template <class PendingCallsOf>
  bool post(PendingCallsOf& pending, Gate& gate) {
    if (failure_ != nullptr) return false;
    this->keep_in(pending.calls());
    this->calls()->post(*this, tasks_, replicas_.devices(), gate, pending.is_in_order(Traits::order()));
    return true;
  }

 private:
  using LateSink = AnyFunction<void(const LateShard&)>;

  static void run(AsyncCall& call, std::size_t task) noexcept {
    auto& self = static_cast<ModelCall&>(call);
    if constexpr (Traits::is_one_task) {
      const EnteredChain entered(self.chain_.innermost());
      [[maybe_unused]] const auto state = self.states_.enter();
      try {
        self.outputs_.fill([&self] { return fanout::apply(self.replicas_, self.inputs_, self.settings_); });
      } catch (...) {
        self.failure_ = std::current_exception();
      }
    } else {
      using Run = RunShard<typename Traits::Taken, VisitReplica<AnyReplicas>, const decltype(self.inputs_.arguments)&,
                           typename Traits::States>;
      self.outputs_.value().run(task, Run({self.replicas_}, self.inputs_.plan, self.link_.innermost(), self.states_,
                                          self.inputs_.arguments, self.inputs_.axis));
    }
  }

  static void tell_late(AsyncCall& call) noexcept {
    if constexpr (!Traits::is_one_task) static_cast<ModelCall&>(call).outputs_.value().tell_late();
  }

  static Result take_result(Base& call) {
    auto& self = static_cast<ModelCall&>(call);
    if (self.failure_ != nullptr) std::rethrow_exception(self.failure_);
    if constexpr (!Traits::is_one_task) self.outputs_.value().check();
    return std::move(self.outputs_.value()).gather();
  }

  static constexpr AsyncCall::Operations operations{.run_shard = &run, .tell_late = &tell_late};

  std::exception_ptr failure_;  // of all but the shards
  LateSink late_sink_;          // a copy, since the model may be gone when the result is taken
  CallSettings settings_;
  Inputs inputs_;
  const Plan one_task_{{.rows = {}, .device = 0}};
  const Plan& tasks_ = Traits::is_one_task ? one_task_ : inputs_.plan;
  CopiedChain<CallLink> chain_;
  const ShardsLink link_{chain_.innermost(), earlier(settings_.deadline, stop_time(chain_.innermost()))};
  const typename Traits::States states_{};
  const AnyReplicas& replicas_;  // not once all shards have ended
  Slot<ShardOutputs<R>> outputs_;
};

}  // namespace detail
}  // namespace fanout::inline v0
