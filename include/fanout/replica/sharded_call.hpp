// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <fanout/base/cache_line.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_outputs.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/dispatch/deal.hpp>
#include <fanout/dispatch/fork_join.hpp>
#include <fanout/dispatch/shard_runner.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/replica/shard_body.hpp>
#include <fanout/scatter/shard_inputs.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The scope that a call's shards run in: a new one if the call has a deadline, otherwise the caller's.
class ShardsScope {
 public:
  ShardsScope(const CallScope* caller, Clock::Time stop_at) noexcept : innermost_(caller) {
    if (stop_at != Clock::never) innermost_ = &stops_.emplace(CallScope{.caller = caller, .stop_at = stop_at});
  }
  ShardsScope(const ShardsScope&) = delete;
  ShardsScope& operator=(const ShardsScope&) = delete;

  const CallScope* innermost() const noexcept { return innermost_; }

 private:
  const CallScope* innermost_;
  std::optional<CallScope> stops_;  // none without a deadline
};

/// Room for a T on the stack. Other cores read these cache lines in the last call, so they take long to come back. A
/// call makes the room first, which prefetches them, and does other things meanwhile.
template <class T>
class alignas(cores_apart) EarlyRoom {
 public:
  EarlyRoom() noexcept {
    for (std::size_t at = 0; at < sizeof(bytes_); at += cache_line) __builtin_prefetch(bytes_ + at, 1);
  }
  EarlyRoom(const EarlyRoom&) = delete;
  EarlyRoom& operator=(const EarlyRoom&) = delete;

  /// Makes the T, which is not destroyed.
  template <class... A>
  T& make(A&&... arguments) noexcept {
    return *::new (static_cast<void*>(bytes_)) T(std::forward<A>(arguments)...);
  }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  alignas(T) std::byte bytes_[sizeof(T)];
};

/// One call whose shards run at the same time: run(), then gather(). All kinds of calls are made so. Call says what is
/// run: see ShardBody. Borrows all that it is made of.
template <class Call, class Inputs>
class ShardedCall;

template <class Call, class... Args>
class ShardedCall<Call, ShardInputs<Args...>> {
 public:
  using Body = ShardBody<Call, Args...>;
  using Outputs = CallOutputs<typename Call::R>;

  /// Dispatches the shards, runs the caller's own, waits for the others, and combines the combined fields of the model.
  /// Runs on the thread that makes the call, after `outputs.begin()`. Runs shards again whose devices failed, if the
  /// settings say so. If the call must be made again with fewer rows at a time, `plan_again()` changes the plan of
  /// `inputs` before. Throws what the shards threw.
  template <class Ranked, class PlanAgain>
  [[gnu::always_inline]] static void run(const typename Call::Runners& runners, const DeviceTable& devices,
                                         const ShardInputs<Args...>& inputs, Outputs& outputs, EarlyRoom<Body>& room,
                                         [[maybe_unused]] Ranked& ranked, const PlanAgain& plan_again) {
    for (;; plan_again(), outputs.again()) {
      ShardedCall call(runners, devices, inputs, outputs, room);
      call.shards_.dispatch();
      call.shards_.run_own();
      call.shards_.join();
      if (!outputs.all_ended({&types, &call})) continue;
      if constexpr (Call::combines_fields) call.combine(ranked);
      return;
    }
  }

  /// Gathers the results. Throws Timeout if shards were late. May run on another thread than run().
  template <class Ranked>
  [[gnu::always_inline]] static gathered_t<typename Call::R> gather(Outputs& outputs, Ranked& ranked) {
    if constexpr (!Call::combines_fields) {
      ranked.join();
      outputs.check_deadline();
    }
    return outputs.gather(ranked);
  }

  ShardedCall(const ShardedCall&) = delete;
  ShardedCall& operator=(const ShardedCall&) = delete;

 private:
  /// Waits for arguments that a device still computes, and for the combined fields.
  ShardedCall(const typename Call::Runners& runners, const DeviceTable& devices, const ShardInputs<Args...>& inputs,
              Outputs& outputs, EarlyRoom<Body>& room)
      : outputs_(outputs),
        fields_(runners, inputs.plan),
        scope_(current_call(), outputs.stop_at),
        body_(room.make(outputs, outputs.make_room(), runners, inputs, scope_.innermost(), states_)),
        shards_(inputs.plan, devices, body_, outputs.deadline, outputs.settings.times) {
    if constexpr (Call::may_be_dealt) {
      if (outputs.are_dealt()) [[unlikely]]
        deal(devices);
    }
    settle_inputs(inputs.arguments);
    if (outputs.rendezvous.notes_ends()) outputs.rendezvous.tasks_are(CallRendezvous::tasks_of(shards_));
  }
  [[gnu::always_inline]] ~ShardedCall() {}  // NOLINT(modernize-use-equals-default): g++ would not inline it

  /// Combines the fields, over all processes that make the call. Then throws Timeout if shards were late. With other
  /// processes, it throws first: a call that one of them gives up combines nothing.
  template <class Ranked>
  void combine(Ranked& ranked) {
    ranked.join();
    if (ranked.has_others()) outputs_.check_deadline();
    fields_.combine(*outputs_.place, ranked);
    outputs_.check_deadline();
  }

  static ShardedCall& typed(void* call) noexcept { return *static_cast<ShardedCall*>(call); }
  static const ShardedCall& typed(const void* call) noexcept { return *static_cast<const ShardedCall*>(call); }

  static void renew(void* call, std::size_t shard) noexcept {
    typed(call).outputs_.renew(shard);
    typed(call).body_.slots_are_made();
  }
  static bool run(const void* call, std::size_t shard, std::size_t device) noexcept {
    return typed(call).body_.run_on(shard, device);
  }
  static std::uint64_t shape(const void* call) { return typed(call).body_.shape(); }

  static constexpr CallTypes types{.refusal = &Call::refusal, .renew = &renew, .run = &run, .shape = &shape};

  /// Dispatches the devices instead of the shards, each of which runs shards one after the other.
  [[gnu::cold, gnu::noinline]] void deal(const DeviceTable& devices) {
    if (Call::shards_may_meet()) return;
    if (body_.is_plain()) outputs_.make_slots();
    body_.slots_are_made();
    outputs_.deal(shards_, devices, {&types, this});
  }

  Outputs& outputs_;
  [[no_unique_address]] typename Call::Fields fields_;
  const ShardsScope scope_;
  [[no_unique_address]] const typename Call::States states_{};
  Body& body_;
  ForkJoin shards_;
};

}}}  // namespace fanout::v0::detail
