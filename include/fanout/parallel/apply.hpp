// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/parallel/call_chain.hpp>
#include <fanout/parallel/call_frame.hpp>
#include <fanout/parallel/forward.hpp>
#include <fanout/parallel/replicate.hpp>
#include <fanout/parallel/run_shards.hpp>
#include <fanout/parallel/shard_context.hpp>
#include <fanout/parallel/shard_outputs.hpp>

namespace fanout::inline v0 {

namespace detail {

/// Calls a replica's forward with a tuple of pieces.
template <class Pieces, class Indices = std::make_index_sequence<std::tuple_size_v<Pieces>>>
struct ForwardPieces;
template <class... P, std::size_t... I>
struct ForwardPieces<std::tuple<P...>, std::index_sequence<I...>> {
  template <class M, class D>
  static auto run(const Replica<M, D>& replica, const CallLink* caller, ShardContext<D>& ctx,
                  std::tuple<P...>& pieces) {
    return replica.run(caller, ctx, std::forward<P>(std::get<I>(pieces))...);
  }
};

/// What forward returns for these pieces, on every kind of device.
template <class M, class Pieces, class First, class... Ds>
struct ForwardResult {
  template <class D>
  using on = decltype(ForwardPieces<Pieces>::run(std::declval<const Replica<M, D>&>(), nullptr,
                                                 std::declval<ShardContext<D>&>(), std::declval<Pieces&>()));
  using type = on<First>;
  static_assert((std::is_same_v<type, on<Ds>> && ...),
                "fanout: forward returns different types on different kinds of devices");
};

}  // namespace detail

/// Runs the replicas at the same time, one for each shard of the plan, on the device that the shard names, and waits
/// for all of them. `arguments(i, space)` returns a tuple of what shard i is handed, in the memory `space`; it is
/// called where the shard runs. Throws InvalidArgument for a plan that names other devices; after all shards have
/// ended, what `arguments` threw, and ReplicaError for what `forward` threw.
template <class M, Device... Ds, class Arguments>
  requires std::invocable<const Arguments&, std::size_t, const MemorySpace&>
auto apply(const Replicas<M, Ds...>& replicas, const CallSettings& settings, const Arguments& arguments) {
  check_plan(settings.plan, settings.plan.rows(), replicas.size());
  using Pieces = std::remove_cvref_t<std::invoke_result_t<const Arguments&, std::size_t, const MemorySpace&>>;
  using R = typename detail::ForwardResult<M, Pieces, Ds...>::type;
  const CallLink* const caller = current_link();
  const auto run_all = [&replicas](const Plan& plan, const auto& body) { run_shards(plan, replicas.devices(), body); };
  const auto run = [&replicas, &arguments, caller](std::size_t i, CallFrame& frame, ShardSlot<R>& slot) {
    replicas.visit(frame.plan[i].device, [&](const auto& replica) {
      const auto& device = replica.device();
      [[maybe_unused]] const auto entered = device.enter();
      ShardContext ctx(device, frame, i, slot.scratch);
      Pieces pieces = arguments(i, device.memory().space);
      slot.failed_in_forward = true;
      slot.fill([&] { return detail::ForwardPieces<Pieces>::run(replica, caller, ctx, pieces); });
      device.synchronize();
    });
  };
  return ShardOutputs<R>(settings, replicas.devices().ids(), run_all, run);
}

/// The same for pieces that scatter() made: `apply(replicas, plan, scatter(plan, x, y))`. Throws ShapeMismatch unless
/// there is one tuple of pieces for each shard.
template <class M, Device... Ds, class... P>
auto apply(const Replicas<M, Ds...>& replicas, const Plan& plan, const std::vector<std::tuple<P...>>& pieces) {
  if (pieces.size() != plan.size()) {
    throw ShapeMismatch(explain({.what = "pieces for another plan",
                                 .where = "apply",
                                 .expected = "one for each of " + std::to_string(plan.size()) + " shards",
                                 .found = std::to_string(pieces.size())}));
  }
  return apply(replicas, CallSettings{.plan = plan},
               [&pieces](std::size_t i, const MemorySpace&) -> const std::tuple<P...>& { return pieces[i]; });
}

}  // namespace fanout::inline v0
