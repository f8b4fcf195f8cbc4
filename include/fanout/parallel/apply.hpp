// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/caller_state.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/call/shard_outputs.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/replica/forward_result.hpp>
#include <fanout/replica/placed_model.hpp>
#include <fanout/replica/replica_call.hpp>
#include <fanout/replica/replicate.hpp>
#include <fanout/replica/sharded_call.hpp>
#include <fanout/replica/strided_pieces.hpp>
#include <fanout/scatter/shard_inputs.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Calls `f(model)` with the i-th of several models, as its own type.
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

/// Runs the i-th shard on the i-th model.
template <class Models, Device... Ds>
struct ModelForEach {
  const Models& models;
  const DeviceSet<Ds...>& devices;

  template <class OnRunner>
  void visit(std::size_t device_of, const OnRunner& run) const {
    devices.visit(device_of, [&](const auto& device) {
      visit_model(models, run.shard, [&](const auto& model) { run(PlacedModel(model, device)); });
    });
  }
};

/// A call of different models with these inputs.
template <class Models, class Inputs, Device... Ds>
struct CallOfModels {
  using Taken = PiecesAs<Inputs, 0>;
  using Forward = ForwardResults<Models, typename Taken::type, Ds...>;
  using R = typename Forward::type;
  using States = typename caller_states_of<Models>::type;
  using Runners = ModelForEach<Models, Ds...>;
  static bool shards_may_meet() noexcept { return Forward::shards_may_meet(); }
  static constexpr bool may_be_dealt = false;  // each shard has a model of its own
  static const char* refusal(Again) noexcept { return nullptr; }
  static constexpr bool combines_fields = false;  // a const `forward` changes none
  struct Fields {
    Fields(const Runners&, const Plan&) noexcept {}
  };
};

/// Runs all shards, waits for them, and returns their results.
template <class Call, class Inputs>
ShardOutputs<typename Call::R> apply_call(const typename Call::Runners& runners, const DeviceTable& devices,
                                          const Inputs& inputs, const CallSettings& settings) {
  ShardOutputs<typename Call::R> outputs(inputs.plan, settings, devices, Call::shards_may_meet());
  using Sharded = ShardedCall<Call, Inputs>;
  EarlyRoom<typename Sharded::Body> room;
  NoSteps alone;
  Sharded::run(runners, devices, inputs, outputs.kept(), room, alone, [] {});  // never made again
  return outputs;
}

template <class R>
inline constexpr bool is_replicas = false;
template <class M, class... Ds>
inline constexpr bool is_replicas<Replicas<M, Ds...>> = true;
template <class I>
inline constexpr bool is_shard_inputs = false;
template <class... Args>
inline constexpr bool is_shard_inputs<ShardInputs<Args...>> = true;

/// The settings of a call that gathers its results in the main device's memory.
inline CallSettings default_settings(const DeviceTable& devices) noexcept { return {.target = devices[0].memory}; }

}  // namespace detail

/// Runs each shard of the inputs on the replica that the plan names, all at the same time, and waits for all of them.
/// Returns a ShardOutputs with one result per shard, in row order; gather() puts them together. Borrows the arguments
/// until it returns. A view in a result is valid as long as the memory that it shows.
///
/// Throws InvalidArgument if the plan is not valid for these devices. After all shards have ended, throws
/// DeviceMismatch if inputs cannot be copied to a device's memory, ReplicaError if `forward` threw or its work failed,
/// and Timeout if `settings` have a deadline and a shard ended after it.
template <class M, Device... Ds, class... Args>
auto apply(const Replicas<M, Ds...>& replicas, const ShardInputs<Args...>& inputs,
           const detail::CallSettings& settings) {
  check_plan(inputs.plan, inputs.plan.rows(), replicas.devices().size());
  using Call = detail::CallOfReplicas<Replicas<M, Ds...>, ShardInputs<Args...>>;
  return detail::apply_call<Call>(replicas, replicas.table(), inputs, settings);
}

/// The same, for results in the main device's memory. It takes any arguments, so that an unqualified
/// `apply(replicas, inputs)` prefers it to std::apply, which argument-dependent lookup also finds.
template <class R, class I>
  requires(detail::is_replicas<std::remove_cvref_t<R>>&& detail::is_shard_inputs<std::remove_cvref_t<I>>)
auto apply(R&& replicas, I&& inputs) {
  return fanout::apply(replicas, inputs, detail::default_settings(replicas.table()));
}

/// Runs different models at the same time: the i-th model on the i-th shard, on the device that the plan names. Copies
/// no model. Waits for all of them, and throws as above. `models` is a tuple, an array, or a vector of models of one
/// type. Their `forward` must be const, and all must return the same type. A model may occur twice:
/// `apply(std::tie(a, a), devices, inputs)`. Throws InvalidArgument if there are not as many models as shards.
template <class Models, Device... Ds, class... Args>
auto apply(const Models& models, const DeviceSet<Ds...>& devices, const ShardInputs<Args...>& inputs) {
  if (const std::size_t count = detail::count_models(models); count != inputs.size()) {
    throw InvalidArgument(explain({.what = detail::Text() << "The number of modules " << count
                                                          << " is not equal to the number of inputs " << inputs.size(),
                                   .where = "apply",
                                   .expected = "one model for each shard of the inputs",
                                   .advice = "scatter by a plan with a shard for each model"}));
  }
  check_plan(inputs.plan, inputs.plan.rows(), devices.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    detail::visit_model(models, i, [&devices](const auto& model) { detail::settle_model(model, devices); });
  }
  using Call = detail::CallOfModels<Models, ShardInputs<Args...>, Ds...>;
  const detail::DeviceTable table(devices);
  return detail::apply_call<Call>({models, devices}, table, inputs, detail::default_settings(table));
}

}}  // namespace fanout::v0
