// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
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

/// Runs one shard on this thread, on the pieces that `Taken` makes for it. `visit(i, f)` calls `f(replica)` for the
/// replica that runs shard i. `states` are the CallerStates of the models.
template <class Taken, class R, class Inputs, class Visit, class States>
void run_shard(const Visit& visit, const Inputs& inputs, const CallLink* caller, const States& states, std::size_t i,
               CallFrame& frame, ShardSlot<R>& slot) {
  using Pieces = typename Taken::type;
  const CallLink stops{.caller = caller, .stop_at = frame.stop_at};
  if (frame.stop_at != Clock::never) caller = &stops;
  visit(i, [&](const auto& replica) {
    const auto& device = replica.device();
    [[maybe_unused]] const auto entered = device.enter();
    [[maybe_unused]] const SettledIfThrown<std::remove_cvref_t<decltype(device)>> settled{device};
    [[maybe_unused]] const auto state = states.enter();
    ShardContext ctx(device, frame, i, slot.scratch);
    Pieces pieces = Taken::make(inputs, {.shard = i,
                                         .rows = inputs.plan[i].rows,
                                         .memory = device.memory(),
                                         .scratch = &slot.scratch,
                                         .axis = inputs.axis});
    if constexpr (requires { replica.check_memory(); }) replica.check_memory();
    slot.failed_in_forward = true;
    slot.fill([&] { return ForwardPieces<Pieces>::run(replica, caller, ctx, pieces); });
    if constexpr (requires { Completion(device.completion()); }) {
      if (frame.stop_at == Clock::never) {  // else its end is the shard's, which may be late
        slot.completion = device.completion();
        return;
      }
    }
    device.synchronize();
  });
}

/// Runs all shards on their devices, and then `finish()` if all have ended well.
template <class R, class Taken, class States, Device... Ds, class Inputs, class Visit, class Finish>
ShardOutputs<R> apply_by(const Visit& visit, const DeviceSet<Ds...>& devices, const Inputs& inputs,
                         const CallSettings& settings, const Finish& finish) {
  check_plan(inputs.plan, inputs.plan.rows(), devices.size());
  settle_inputs(inputs.arguments);
  const CallLink* const caller = current_link();
  const States states;
  const auto run_all = [&](const Plan& plan, const auto& shards) {
    run_shards(
        plan, devices, shards, settings.deadline, [&shards]() noexcept { shards.tell_late(); }, settings.time);
  };
  const auto run = [&visit, &inputs, &states, caller](std::size_t i, CallFrame& frame, ShardSlot<R>& slot) {
    run_shard<Taken>(visit, inputs, caller, states, i, frame, slot);
  };
  return ShardOutputs<R>(inputs.plan, settings, devices.ids(), run_all, run, finish);
}

/// What the replicas of a model are handed; those on the first kind of devices decide for all.
template <class Inputs, class First, class... Others>
struct PiecesTaken
    : PiecesFor<typename First::model_type,
                ShardContext<std::remove_cvref_t<decltype(std::declval<const First&>().device())>>, Inputs> {};

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
  using Taken = detail::PiecesTaken<ShardInputs<Args...>, Replica<M, Ds>...>;
  using R = typename detail::ForwardResult<typename Taken::type, Replica<M, Ds>...>::type;
  const auto visit = [&](std::size_t i, const auto& run) { replicas.visit(inputs.plan[i].device, run); };
  using States = detail::CallerStates<typename Replica<M, Ds>::model_type...>;
  constexpr bool changes = !(detail::ForwardPieces<typename Taken::type>::template is_const<Replica<M, Ds>> && ...);
  return detail::with_combined_fields<changes>(replicas, inputs.plan, [&](const auto& combine) {
    return detail::apply_by<R, Taken, States>(visit, replicas.devices(), inputs, settings, combine);
  });
}

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
  const auto visit = [&](std::size_t i, const auto& run) {
    devices.visit(inputs.plan[i].device, [&](const auto& device) {
      detail::visit_model(models, i, [&](const auto& model) { run(detail::PlacedModel(model, device)); });
    });
  };
  using States = typename detail::caller_states_of<Models>::type;
  return detail::apply_by<R, Taken, States>(visit, devices, inputs, detail::default_settings(devices), [] {});
}

}  // namespace fanout::inline v0
