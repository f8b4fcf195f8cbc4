// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/inline_array.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/stages/batch_reductions.hpp>
#include <fanout/stages/first_failure.hpp>
#include <fanout/stages/flow.hpp>
#include <fanout/stages/join_batches.hpp>
#include <fanout/stages/micro_batch.hpp>
#include <fanout/stages/pipeline_options.hpp>
#include <fanout/stages/stage_error.hpp>
#include <fanout/stages/stage_types.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// One call of a pipeline. Each stage calls its model for one micro-batch after the other.
template <class Stages, class Positions, class... Args>
class PipelineCall;

template <class Stages, std::size_t... I, class... Args>
class PipelineCall<Stages, std::index_sequence<I...>, Args...> {
  static constexpr std::size_t stages = sizeof...(I);
  static constexpr std::size_t last = stages - 1;
  template <std::size_t S>
  using Types = StageTypes<Stages, S, Args...>;
  using Returned = typename Types<last>::Returned;
  using Result = typename Types<last>::Result;
  template <class T>
  using Kept = std::optional<std::conditional_t<std::is_void_v<T>, bool, T>>;

 public:
  /// Plans the call. `models` is the tuple of the stages' models. Borrows all.
  template <class Models>
  PipelineCall(const Models& models, const PipelineOptions& options, const Args&... args)
      : calls_(std::get<I>(models)...),
        rows_(count_rows(std::get<0>(calls_).axis(), args...).rows.value_or(0)),
        batches_(micro_batches(options, rows_, stages)),
        arguments_(args...),
        values_((static_cast<void>(I), batches_.size())...),
        whole_(std::get<last>(calls_).target()),
        flow_(stages * batches_.size()) {
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
    (std::get<I>(calls_).enter(Types<I>::Call::order()), ...);
    flow_.run([this](std::size_t step) noexcept { run_step(step); });
    if (failure_.exception() != nullptr) {
      const std::size_t k = failure_.step() % batches_.size();
      throw StageError(failure_.step() / batches_.size(), k, batches_[k].rows, failure_.exception());
    }
    if constexpr (!std::is_void_v<Result>) return join();
  }

 private:
  std::size_t step(std::size_t stage, std::size_t batch) const noexcept { return stage * batches_.size() + batch; }

  void run_step(std::size_t step) noexcept {
    static constexpr void (PipelineCall::*run_stages[])(std::size_t) = {&PipelineCall::run_stage<I>...};
    const EnteredScope entered(scope_);
    failure_.run(step, [&] { (this->*run_stages[step / batches_.size()])(step % batches_.size()); });
  }

  /// The last stage that takes something of the result of stage S, which is kept until then.
  template <std::size_t S>
  static constexpr std::size_t last_taker() noexcept {
    std::size_t found = S + 1;
    const auto look_at = [&found]<std::size_t T>(std::integral_constant<std::size_t, T>) {
      if constexpr (T > S) {
        if (Types<T>::Takes::takes_of(S)) found = T;
      }
    };
    (look_at(std::integral_constant<std::size_t, I>()), ...);
    return found;
  }

  template <std::size_t S>
  void run_stage(std::size_t k) {
    const auto& calls = std::get<S>(calls_);
    const MicroBatch batch{.rows = batches_[k].rows,
                           .batch_rows = rows_,
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
    ((S != 0 && last_taker<I>() == S ? std::get<I>(values_)[k].reset() : void()), ...);
  }

  Result join() {
    const auto& calls = std::get<last>(calls_);
    auto& values = std::get<last>(values_);
    ShardResults<Result> results(values.size(), true,
                                 [&values](std::size_t k) -> const Result& { return made(values[k]); });
    const GatherTarget place{.plan = batches_,
                             .devices = calls.devices(),
                             .target = calls.target(),
                             .axis = calls.axis(),
                             .team = calls.team()};
    Result result = join_batches<Returned>(results, place, output_root);
    backend::wait_for(place.target);
    return result;
  }

  std::tuple<typename Types<I>::Calls...> calls_;
  const std::size_t rows_;
  const Plan batches_;  // the micro-batches
  const std::tuple<const Args&...> arguments_;
  const CallScope* const scope_ = current_call();
  std::tuple<InlineArray<Kept<typename Types<I>::Result>>...> values_;  // of each stage, until the next one had them
  BatchReductions reductions_;
  OutputBuffers whole_;  // of the last stage
  Flow flow_;
  FirstFailure failure_;
};

}}}  // namespace fanout::v0::detail
