// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/maybe.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/parallel/call_chain.hpp>
#include <fanout/parallel/call_frame.hpp>
#include <fanout/parallel/caller_state.hpp>
#include <fanout/parallel/combined_fields.hpp>
#include <fanout/parallel/forward_result.hpp>
#include <fanout/parallel/placed_model.hpp>
#include <fanout/parallel/replicate.hpp>
#include <fanout/parallel/run_shards.hpp>
#include <fanout/parallel/settled_inputs.hpp>
#include <fanout/parallel/shard_context.hpp>
#include <fanout/parallel/shard_inputs.hpp>
#include <fanout/parallel/shard_outputs.hpp>
#include <fanout/parallel/strided_pieces.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/tree/node.hpp>

namespace fanout::inline v0 {

namespace detail {

/// Calls `f(model)` for the i-th of several models, as its own type.
template <class Models, class F>
void visit_model(const Models& models, std::size_t i, const F& f) {
  if constexpr (TupleNode<Models>) {
    const auto visit = [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == i ? f(std::get<I>(models)) : void()), ...);
    };
    visit(std::make_index_sequence<std::tuple_size_v<Models>>{});
  } else {
    f(models[i]);
  }
}

template <class Models>
std::size_t count_models(const Models& models) {
  if constexpr (TupleNode<Models>) {
    return std::tuple_size_v<Models>;
  } else {
    return models.size();
  }
}

/// If what follows throws, waits for what the device was given before, since it uses memory that goes now.
template <class D>
struct SettledIfThrown {
  const D& device;
  int thrown = std::uncaught_exceptions();

  ~SettledIfThrown() {
    if (std::uncaught_exceptions() == thrown) return;
    try {
      device.synchronize();
    } catch (...) {  // what is thrown already comes first
    }
  }
};
template <class D>
  requires requires(const D& device) { requires noexcept(device.synchronize()); }
struct SettledIfThrown<D> {
  const D& device;
};

/// What each shard of a call is run with: what is not known to it by itself. Where all arguments are borrowed, the
/// references to them stand here, and else in what the caller keeps.
template <class... Args>
using ArgumentsForShards =
    std::conditional_t<(std::is_reference_v<Args> && ...), std::tuple<Args...>, const std::tuple<Args...>&>;

/// Runs any shard of a call on the calling thread, on the pieces that `Taken` makes for it. What threads read first
/// stands here side by side. `visit(i, device, f)` calls `f(replica)` for the replica that runs shard i. `states` are the
/// CallerStates of the models.
template <class Taken, class Visit, class Arguments, class States>
class RunShard {
 public:
  RunShard(const Visit& visit, const Plan& plan, const CallLink* caller, const States& states,
           const Arguments& arguments, int axis) noexcept
      : visit_(visit), plan_(plan.begin()), caller_(caller), arguments_(arguments), axis_(axis), states_(states) {
    for (std::size_t i = 0; i < plan.size() && i < few; ++i) first_.elements[i] = plan_[i];
  }

  template <class R>
  void operator()(std::size_t i, CallFrame& frame, ShardSlot<R>& slot) const {
    const Shard& shard = i < few ? first_.elements[i] : plan_[i];
    visit_(i, shard.device, [&](const auto& replica) { run_on(replica, i, shard.rows, frame, slot); });
  }

 private:
  using Pieces = typename Taken::type;
  static constexpr std::size_t few = 2;

  template <class AnyReplica, class R>
  void run_on(const AnyReplica& replica, std::size_t i, const RowRange& rows, CallFrame& frame,
              ShardSlot<R>& slot) const {
    const auto& device = replica.device();
    [[maybe_unused]] const auto entered = device.enter();
    [[maybe_unused]] const SettledIfThrown<std::remove_cvref_t<decltype(device)>> settled{device};
    [[maybe_unused]] const auto state = states_.enter();
    ShardContext ctx(device, frame, i, rows, slot.scratch);
    Pieces pieces = Taken::make(
        arguments_, {.shard = i, .rows = rows, .memory = device.memory(), .scratch = &slot.scratch, .axis = axis_});
    if constexpr (requires { replica.check_memory(); }) replica.check_memory();
    try {
      slot.fill([&] { return ForwardPieces<Pieces>::run(replica, caller_, ctx, pieces); });
      if constexpr (requires { Completion(device.completion()); }) {
        if (frame.stop_at == Clock::never) {  // else its end is the shard's, which may be late
          slot.completion = device.completion();
          return;
        }
      }
      device.synchronize();
    } catch (...) {
      slot.failed_in_forward = true;
      throw;
    }
  }

  Visit visit_;
  const Shard* plan_;
  const CallLink* caller_;
  Arguments arguments_;
  int axis_;
  [[no_unique_address]] std::conditional_t<std::is_empty_v<States>, States, const States&> states_;
  FewElements<Shard, few> first_;  // of the plan, so that it need not be looked at
};

/// The innermost link of the chain that the shards of a call run in, which is to stop at this time.
class ShardsLink {
 public:
  ShardsLink(const CallLink* caller, Clock::Time stop_at) noexcept : innermost_(caller) {
    if (stop_at != Clock::never) innermost_ = &stops_.emplace(CallLink{.caller = caller, .stop_at = stop_at});
  }
  ShardsLink(const ShardsLink&) = delete;
  ShardsLink& operator=(const ShardsLink&) = delete;

  const CallLink* innermost() const noexcept { return innermost_; }

 private:
  const CallLink* innermost_;
  Maybe<CallLink> stops_;  // none where nothing is to stop
};

/// Makes `use(run_all, run)` run all shards of a call on their devices, and returns what that returns: see ShardOutputs.
template <class Taken, class States, Device... Ds, class... Args, class Visit, class Use>
auto with_shards(const Visit& visit, const DeviceSet<Ds...>& devices, const ShardInputs<Args...>& inputs,
                 const CallSettings& settings, const Use& use) {
  settle_inputs(inputs.arguments);
  const ShardsLink link(current_link(), earlier(settings.deadline, stop_time(current_link())));
  const States states;
  const auto run_all = [&devices, &settings](const Plan& plan, const auto& shards) {
    run_shards(
        plan, devices, shards, settings.deadline, [&shards]() noexcept { shards.tell_late(); }, settings.times);
  };
  return use(run_all, RunShard<Taken, Visit, ArgumentsForShards<Args...>, States>(
                          visit, inputs.plan, link.innermost(), states, inputs.arguments, inputs.axis));
}

/// The replica that runs a shard.
template <class AnyReplicas>
struct VisitReplica {
  const AnyReplicas& replicas;
  template <class F>
  void operator()(std::size_t, std::size_t device, const F& f) const {
    replicas.visit(device, f);
  }
};

/// What the replicas of a model are handed; those on the first kind of devices decide for all.
template <class Inputs, class First, class... Others>
struct PiecesTaken
    : PiecesFor<typename First::model_type,
                ShardContext<std::remove_cvref_t<decltype(std::declval<const First&>().device())>>, Inputs> {};

template <class Inputs, class... AnyReplica>
struct AppliedTraits {
  using Taken = PiecesTaken<Inputs, AnyReplica...>;
  using R = typename ForwardResult<typename Taken::type, AnyReplica...>::type;
  using States = CallerStates<typename AnyReplica::model_type...>;
  static constexpr bool changes = !(ForwardPieces<typename Taken::type>::template is_const<AnyReplica> && ...);
};

template <class R>
inline constexpr bool is_replicas = false;
template <class M, class... Ds>
inline constexpr bool is_replicas<Replicas<M, Ds...>> = true;
template <class I>
inline constexpr bool is_shard_inputs = false;
template <class... Args>
inline constexpr bool is_shard_inputs<ShardInputs<Args...>> = true;

/// Results are gathered in the main device's memory.
template <Device... Ds>
CallSettings default_settings(const DeviceSet<Ds...>& devices) {
  CallSettings settings;
  devices.visit(0, [&settings](const auto& device) { settings.target = device.memory(); });
  return settings;
}

}  // namespace detail

/// Runs the replicas at the same time, one for each shard, on the device that the inputs' plan names, and waits for all
/// of them. Results stand in the order of the shards; gather() puts them together. Throws InvalidArgument for a plan
/// that names other devices; after all shards have ended, DeviceMismatch for inputs that cannot be brought to a
/// device's memory, ReplicaError for what `forward` threw and its work failed with, and Timeout if `settings` have a
/// deadline and a shard ended after it.
template <class M, Device... Ds, class... Args>
auto apply(const Replicas<M, Ds...>& replicas, const ShardInputs<Args...>& inputs, const CallSettings& settings) {
  using Traits = detail::AppliedTraits<ShardInputs<Args...>, Replica<M, Ds>...>;
  check_plan(inputs.plan, inputs.plan.rows(), replicas.devices().size());
  return detail::with_combined_fields<Traits::changes>(replicas, inputs.plan, [&](const auto& combine) {
    const auto use = [&](const auto& run_all, const auto& run) {
      return ShardOutputs<typename Traits::R>(inputs.plan, settings, replicas.devices().ids(), run_all, run, combine);
    };
    return detail::with_shards<typename Traits::Taken, typename Traits::States>(
        detail::VisitReplica<Replicas<M, Ds...>>{replicas}, replicas.devices(), inputs, settings, use);
  });
}

namespace detail {

/// The same as gather(apply(replicas, inputs, settings)), for a plan that is valid: what need not outlive this is not
/// copied.
template <class M, Device... Ds, class... Args>
auto apply_and_gather(const Replicas<M, Ds...>& replicas, const ShardInputs<Args...>& inputs,
                      const CallSettings& settings, ShardsRoom& room) {
  using Traits = AppliedTraits<ShardInputs<Args...>, Replica<M, Ds>...>;
  return with_combined_fields<Traits::changes>(replicas, inputs.plan, [&](const auto& combine) {
    CallOutputs<typename Traits::R> outputs(inputs.plan, settings, replicas.devices().ids().data(), room);
    const auto use = [&](const auto& run_all, const auto& run) { outputs.run_all(run_all, run, combine); };
    with_shards<typename Traits::Taken, typename Traits::States>(VisitReplica<Replicas<M, Ds...>>{replicas},
                                                                 replicas.devices(), inputs, settings, use);
    return outputs.gather();
  });
}

}  // namespace detail

/// The same with results that are gathered in the main device's memory. Takes its arguments as they come, so that a
/// plain `apply(replicas, inputs)` prefers it to std::apply, which argument-dependent lookup finds as well.
template <class R, class I>
  requires(detail::is_replicas<std::remove_cvref_t<R>>&& detail::is_shard_inputs<std::remove_cvref_t<I>>)
auto apply(R&& replicas, I&& inputs) {
  return fanout::apply(replicas, inputs, detail::default_settings(replicas.devices()));
}

/// Runs different models at the same time, the i-th one for the i-th shard, and waits for all of them; otherwise as for
/// replicas. `models` is a tuple or an array, or a vector of models of one type; it is only read, so `forward` must be
/// const, and one model may stand there twice: `apply(std::tie(a, a), devices, inputs)`. All return one type. Throws
/// InvalidArgument unless there are as many models as shards.
template <class Models, Device... Ds, class... Args>
auto apply(const Models& models, const DeviceSet<Ds...>& devices, const ShardInputs<Args...>& inputs) {
  using Taken = detail::PiecesAs<ShardInputs<Args...>, 0>;
  using R = typename detail::ForwardResults<Models, typename Taken::type, Ds...>::type;
  if (const std::size_t count = detail::count_models(models); count != inputs.size()) {
    throw InvalidArgument(explain({.what = "The number of modules " + std::to_string(count) +
                                           " is not equal to the number of inputs " + std::to_string(inputs.size()),
                                   .where = "apply",
                                   .expected = "one model for each shard of the inputs",
                                   .advice = "scatter by a plan with a shard for each model"}));
  }
  check_plan(inputs.plan, inputs.plan.rows(), devices.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    detail::visit_model(models, i, [&devices](const auto& model) { detail::settle_model(model, devices); });
  }
  const auto visit = [&models, &devices](std::size_t i, std::size_t device_of, const auto& run) {
    devices.visit(device_of, [&](const auto& device) {
      detail::visit_model(models, i, [&](const auto& model) { run(detail::PlacedModel(model, device)); });
    });
  };
  using States = typename detail::caller_states_of<Models>::type;
  const CallSettings settings = detail::default_settings(devices);
  return detail::with_shards<Taken, States>(
      visit, devices, inputs, settings, [&](const auto& run_all, const auto& run) {
        return ShardOutputs<R>(inputs.plan, settings, devices.ids(), run_all, run);
      });
}

}  // namespace fanout::inline v0
