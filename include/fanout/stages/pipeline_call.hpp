// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/device_id.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/pool_allocator.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/schedule/flow.hpp>
#include <fanout/schedule/flow_scope.hpp>
#include <fanout/schedule/pipeline_options.hpp>
#include <fanout/schedule/time_in_calls.hpp>
#include <fanout/stages/batch_reductions.hpp>
#include <fanout/stages/join_batches.hpp>
#include <fanout/stages/made.hpp>
#include <fanout/stages/micro_batch.hpp>
#include <fanout/stages/stage_error.hpp>
#include <fanout/stages/stage_types.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// One call of a pipeline. Each stage calls its model for one micro-batch after the other.
template <class Stages, class Positions, class... Args>
class PipelineCall;

template <class Stages, std::size_t... I, class... Args>
class PipelineCall<Stages, std::index_sequence<I...>, Args...> {
  static constexpr std::size_t last = sizeof...(I) - 1;
  template <std::size_t S>
  using Types = StageTypes<Stages, S, Args...>;
  using Joined = typename Types<last>::Joined;
  using Result = typename Types<last>::Result;
  template <class T>
  using Kept = std::optional<std::conditional_t<std::is_void_v<T>, bool, T>>;

 public:
  static constexpr std::size_t stages = sizeof...(I);
  /// True if replicas must take the micro-batches of calls in the order of the calls.
  static constexpr bool needs_order = ((Types<I>::Call::order() != CallOrder::any) || ...);
  using result_type = Result;

  /// Plans the call, which is made in `scope`. `models` is the tuple of the stages' models. Borrows all. The models are
  /// used until the flow has ended.
  template <class Models>
  PipelineCall(const Models& models, const PipelineOptions& options, TimeInCalls& time, const CallScope* scope,
               const Args&... args)
      : calls_(std::get<I>(models)...),
        main_device_(std::get<last>(calls_).devices()[0]),
        target_(std::get<last>(calls_).target()),
        axis_(std::get<last>(calls_).axis()),
        rows_(count_rows(std::get<0>(calls_).axis(), args...).rows.value_or(0)),
        batches_(micro_batches(options, rows_, stages)),
        arguments_(args...),
        values_((static_cast<void>(I), batches_.size())...),
        whole_(target_),
        flow_(stages * batches_.size()),
        scope_(options.deadline, scope) {
    if ((std::get<I>(calls_).is_measured() || ...)) flow_.timed_by(time);
    const std::size_t most = in_flight(options, stages);
    for (std::size_t k = 0; k < batches_.size(); ++k) (flow_.add(step(I, k), std::get<I>(calls_).main_device()), ...);
    for (std::size_t i = 0; i < stages; ++i) {
      for (std::size_t k = 0; k < batches_.size(); ++k) {
        if (k + 1 < batches_.size()) flow_.goes_on(step(i, k), step(i, k + 1));
        if (i != last) flow_.comes_before(step(i, k), step(i + 1, k));
      }
    }
    for (std::size_t k = most; k < batches_.size(); ++k) flow_.comes_before(step(last, k - most), step(0, k));
  }
  PipelineCall(const PipelineCall&) = delete;
  PipelineCall& operator=(const PipelineCall&) = delete;

  Result run() {
    begin();
    run_flow();
    return end(std::get<last>(calls_).team());
  }

  // The parts of run(). Other threads may run the flow.

  /// Enters the models. Waits for devices that compute the arguments for this thread.
  void begin() {
    settle_inputs(arguments_);
    (std::get<I>(calls_).enter(Types<I>::Call::order()), ...);
  }
  void run_flow() {
    flow_.run([this](std::size_t step) noexcept { run_step(step); });
    (std::get<I>(calls_).leave(), ...);
  }
  Flow& flow() noexcept { return flow_; }
  /// Calls `f` for the calls of each stage.
  template <class F>
  void for_each_stage(const F& f) {
    (f(std::get<I>(calls_)), ...);
  }
  void run_step(std::size_t step) noexcept {
    static constexpr void (PipelineCall::*run_stages[])(std::size_t) = {&PipelineCall::run_stage<I>...};
    scope_.run(step, [&] { (this->*run_stages[step / batches_.size()])(step % batches_.size()); });
  }
  /// The result, when the flow has ended. Does not use the models. `team`: devices whose threads help, or null.
  Result end(const DeviceTable* team) {
    if (scope_.failure() != nullptr) {
      const std::size_t k = scope_.failed_step() % batches_.size();
      throw StageError(scope_.failed_step() / batches_.size(), k, batches_[k].rows, scope_.failure());
    }
    if constexpr (!std::is_void_v<Result>) return join(team);
  }

 private:
  std::size_t step(std::size_t stage, std::size_t batch) const noexcept { return stage * batches_.size() + batch; }

  template <std::size_t S>
  void run_stage(std::size_t k) {
    const auto& calls = std::get<S>(calls_);
    const MicroBatch batch{.rows = batches_[k].rows,
                           .batch_rows = rows_,
                           .step = {"forward", S, static_cast<std::uint32_t>(k)},
                           .is_last = k + 1 == batches_.size(),
                           .takes_whole = S == 0,
                           .whole = S == last ? &whole_ : nullptr,
                           .reductions = S == last ? &reductions_ : nullptr};
    auto& value = std::get<S>(values_)[k];
    const auto call = [&](const auto&... args) {
      if constexpr (std::is_void_v<typename Types<S>::Result>) {
        calls.call(batch, calls.target(), args...);
      } else if constexpr (S == last) {
        value.emplace(calls.call(batch, calls.target(), args...));
      } else {
        value.emplace(calls.call(batch, std::get<S + 1>(calls_).memory(), args...));
      }
    };
    if constexpr (S == 0) {
      std::apply(call, arguments_);
    } else {
      Types<S>::Takes::give(
          [&](auto maker) -> const auto& { return made(std::get<maker>(values_)[k]); }, call);
    }
    ((S != 0 && last_taker<CallResults<Stages, Args...>, Stages, I>() == S ? std::get<I>(values_)[k].reset() : void()),
     ...);
  }

  Result join(const DeviceTable* team) {
    auto& values = std::get<last>(values_);
    ShardResults<Result> results(values.size(), true,
                                 [&values](std::size_t k) -> const Result& { return made(values[k]); });
    const GatherTarget place{
        .plan = batches_, .devices = &main_device_, .target = target_, .axis = axis_, .team = team};
    Result result = join_batches<Joined>(results, place, output_root);
    backend::wait_for(place.target);
    return result;
  }

  std::tuple<typename Types<I>::Calls...> calls_;
  const DeviceId main_device_;  // of the last stage
  const backend::Memory target_;
  const int axis_;
  const std::size_t rows_;
  const Plan batches_;  // the micro-batches
  const std::tuple<const Args&...> arguments_;
  std::tuple<PoolVector<Kept<typename Types<I>::Result>>...> values_;  // of each stage, until the next one had them
  BatchReductions reductions_;
  OutputBuffers whole_;  // of the last stage
  Flow flow_;
  FlowScope scope_;
};

}}}  // namespace fanout::v0::detail
