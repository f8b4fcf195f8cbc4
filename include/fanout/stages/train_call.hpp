// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/call/call_scope.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/pool_allocator.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/broadcast.hpp>
#include <fanout/schedule/checked_schedule.hpp>
#include <fanout/schedule/flow.hpp>
#include <fanout/schedule/flow_scope.hpp>
#include <fanout/schedule/pipeline_options.hpp>
#include <fanout/schedule/schedule.hpp>
#include <fanout/schedule/time_in_calls.hpp>
#include <fanout/stages/batch_reductions.hpp>
#include <fanout/stages/given_back.hpp>
#include <fanout/stages/made.hpp>
#include <fanout/stages/micro_batch.hpp>
#include <fanout/stages/part_of.hpp>
#include <fanout/stages/procedures.hpp>
#include <fanout/stages/stage.hpp>
#include <fanout/stages/stage_calls.hpp>
#include <fanout/stages/stage_error.hpp>
#include <fanout/stages/stage_types.hpp>
#include <fanout/stages/train_types.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// One step of training: each micro-batch goes through the stages forward, then back, in the order of a schedule.
template <class Stages, class Positions, class X, class Targets, class Loss>
class TrainCall;

template <class Stages, std::size_t... I, class X, class Targets, class Loss>
class TrainCall<Stages, std::index_sequence<I...>, X, Targets, Loss> {
  static constexpr std::size_t stages = sizeof...(I);
  static constexpr std::size_t last = stages - 1;
  using Pass = Schedule::Pass;
  template <std::size_t S>
  using Forward = TrainForward<Stages, S, X>;
  template <std::size_t S>
  using Back = TrainBackward<Stages, S, X, Targets, Loss>;
  template <std::size_t S>
  static constexpr bool frozen = is_frozen<Stages, S, X>();
  template <std::size_t S>
  using Gradients = typename TrainGradients<Back<S>, std::tuple_element_t<S, Stages>>::type;
  using LossOfBatch = std::tuple_element_t<0, typename Back<last>::Result>;

  /// The values of one micro-batch at a stage.
  template <std::size_t S>
  struct Kept {
    std::optional<typename Forward<S>::Y> y;  // until the last stage has taken it; of the last one: as its state
    std::optional<typename Forward<S>::State> state;   // until the stage has gone back
    std::optional<typename Back<S>::Dx> dx;            // until the stage that it is for has gone back
    std::optional<typename Back<S>::End> for_weights;  // until the gradients are known, if the stage splits backward
  };

 public:
  /// Plans the call. `models` is the tuple of the stages' models. Borrows all.
  template <class Models>
  TrainCall(const Models& models, const PipelineOptions& options, TimeInCalls& time, const X& x, const Targets& targets,
            const Loss& loss)
      : calls_(std::get<I>(models)...),
        rows_(count_rows(0, x, targets).rows.value_or(0)),
        batches_(micro_batches(options, rows_, stages)),
        schedule_(options, {CheckedSchedule::Stage{std::get<I>(calls_).devices()[0], Back<I>::splits}...},
                  batches_.size()),
        x_(x),
        targets_(targets),
        loss_(loss),
        kept_((static_cast<void>(I), batches_.size())...),
        flow_(3 * stages * batches_.size()),
        scope_(options.deadline, current_call()) {
    (std::get<I>(calls_).check_trainable(batches_[0].rows.size(), I), ...);
    if ((std::get<I>(calls_).is_measured() || ...)) flow_.timed_by(time);
    const DeviceEntry* const devices[] = {&std::get<I>(calls_).main_device()...};
    for (const std::vector<Schedule::Step>& order : schedule_.orders()) {
      std::size_t previous = Flow::none;
      for (const Schedule::Step& step : order) {
        const std::size_t now = step_of(step.stage, step.micro_batch, step.pass);
        flow_.add(now, *devices[step.stage]);
        if (previous != Flow::none) flow_.goes_on(previous, now);
        previous = now;
      }
    }
    for (std::size_t s = 0; s < last; ++s) {
      for (std::size_t k = 0; k < batches_.size(); ++k) {
        flow_.comes_before(step_of(s, k, Pass::forward), step_of(s + 1, k, Pass::forward));
        flow_.comes_before(step_of(s + 1, k, Pass::backward), step_of(s, k, Pass::backward));
      }
    }
  }
  TrainCall(const TrainCall&) = delete;
  TrainCall& operator=(const TrainCall&) = delete;

  /// The loss, and the gradients of each stage.
  auto run() {
    settle_inputs(std::tie(x_, targets_));
    (std::get<I>(calls_).enter(CallOrder::any), ...);
    flow_.run([this](std::size_t step) noexcept { run_step(step); });
    if (scope_.failure() != nullptr) {
      const std::size_t k = scope_.failed_step() % batches_.size();
      const std::size_t stage = scope_.failed_step() / batches_.size() % stages;
      throw StageError(stage, k, batches_[k].rows, scope_.failure());
    }
    // The last micro-batch has what all have come to.
    return std::pair{std::move(made(loss_of_batch_)), std::make_tuple(gradients_of<I>()...)};
  }

 private:
  std::size_t step_of(std::size_t stage, std::size_t batch, Pass pass) const noexcept {
    return (static_cast<std::size_t>(pass) * stages + stage) * batches_.size() + batch;
  }

  void run_step(std::size_t step) noexcept {
    static constexpr void (TrainCall::*ways[])(std::size_t) = {&TrainCall::go_forward<I>..., &TrainCall::go_back<I>...,
                                                               &TrainCall::find_gradients<I>...};
    scope_.run(step, [&] { (this->*ways[step / batches_.size()])(step % batches_.size()); });
  }

  template <std::size_t S>
  Gradients<S> gradients_of() {
    if constexpr (frozen<S>) {
      return no_gradients;
    } else {
      return std::move(made(std::get<S>(gradients_)));
    }
  }

  template <std::size_t S>
  MicroBatch micro_batch(std::size_t k, const char* pass, BatchReductions* reductions) const noexcept {
    return {.rows = batches_[k].rows,
            .batch_rows = rows_,
            .step = {pass, S, static_cast<std::uint32_t>(k)},
            .is_last = k + 1 == batches_.size(),
            .reductions = reductions};
  }

  template <std::size_t S>
  void go_forward(std::size_t k) {
    if constexpr (S == 0) {
      keep_result<S>(k, PartOf<X>{x_, batches_[k].rows});
    } else {
      TrainTakes<Stages, S, X>::give(
          [&](auto maker) -> const auto& { return made(std::get<maker>(kept_)[k].y); },
          [&](const auto&... in) { keep_result<S>(k, in...); });
      // The result of the last stage stays for the loss.
      ((last_taker<TrainResults<Stages, X>, Stages, I>() == S ? std::get<I>(kept_)[k].y.reset() : void()), ...);
    }
  }
  template <std::size_t S, class... In>
  void keep_result(std::size_t k, const In&... in) {
    if constexpr (frozen<S>) {
      std::get<S>(kept_)[k].y.emplace(
          std::get<S>(calls_).call(micro_batch<S>(k, "forward", nullptr), memory_after<S>(), in...));
    } else {
      keep_result_and_state<S>(k, in...);
    }
  }
  template <std::size_t S, class... In>
  void keep_result_and_state(std::size_t k, const In&... in) {
    const ForwardProcedure<Stages, S> procedure;
    auto [y, state] =
        std::get<S>(calls_).call(micro_batch<S>(k, "forward", nullptr), memory_after<S>(), broadcast(procedure), in...);
    auto& kept = std::get<S>(kept_)[k];
    kept.y.emplace(std::move(y));
    kept.state.emplace(std::move(state));
  }

  /// Takes what comes back to the stage.
  template <std::size_t S>
  typename TrainDy<Stages, S, X, Targets, Loss>::type take_dy(std::size_t k) {
    if constexpr (gives_only_to_next<Stages, S, X>()) {
      auto& dx = std::get<S + 1>(kept_)[k].dx;
      auto dy = std::move(made(dx));
      dx.reset();
      return dy;
    } else {
      return [&]<std::size_t... N>(std::index_sequence<N...>) {
        auto dy = KeysOf<typename Forward<S>::Y>::back(std::get<S>(calls_).memory(), batches_[k].rows,
                                                       given<S, S + 1 + N>(k)...);
        (forget_dx<S, S + 1 + N>(k), ...);
        return dy;
      }
      (std::make_index_sequence<last - S>());
    }
  }
  template <std::size_t S, std::size_t Taker>
  void forget_dx(std::size_t k) {
    if (!gives_dx<Stages, Taker, X, S>()) std::get<Taker>(kept_)[k].dx.reset();
  }
  template <std::size_t S, std::size_t Taker>
  auto given(std::size_t k) {
    return GivenBackBy<Stages, S, Taker, X, Targets, Loss>{std::get<Taker>(kept_)[k].dx,
                                                           std::get<Taker>(calls_).devices()[0]};
  }

  template <std::size_t S>
  void go_back(std::size_t k) {
    auto& kept = std::get<S>(kept_)[k];
    if constexpr (S == last) {
      const typename Back<S>::Procedure procedure(loss_);
      auto result = call_back<S>(k, procedure, made(kept.y), PartOf<Targets>{targets_, batches_[k].rows});
      loss_of_batch_.emplace(std::move(std::get<0>(result)));
      kept.y.reset();
      keep_end<S>(k, result);
    } else if constexpr (!frozen<S>) {
      const typename Back<S>::Procedure procedure;
      auto result = call_back<S>(k, procedure, take_dy<S>(k));
      keep_end<S>(k, result);
    }
    kept.state.reset();
    if (Back<S>::splits && !schedule_.has_weights(S)) find_gradients<S>(k);
  }
  template <std::size_t S, class Procedure, class... Args>
  auto call_back(std::size_t k, const Procedure& procedure, const Args&... args) {
    return std::get<S>(calls_).call(micro_batch<S>(k, "backward", &reductions_[S]), memory_before<S>(),
                                    broadcast(procedure), made(std::get<S>(kept_)[k].state), args...);
  }
  template <std::size_t S, class Result>
  void keep_end(std::size_t k, Result& result) {
    auto& kept = std::get<S>(kept_)[k];
    auto& end = std::get<Back<S>::end_at>(result);
    if constexpr (gives_dx<Stages, S, X>()) kept.dx.emplace(std::move(std::get<Back<S>::dx_at>(result)));
    if constexpr (Back<S>::splits) {
      kept.for_weights.emplace(std::move(end));
    } else {
      std::get<S>(gradients_).emplace(std::move(end));
    }
  }

  template <std::size_t S>
  void find_gradients(std::size_t k) {
    if constexpr (Back<S>::splits) {
      const auto& calls = std::get<S>(calls_);
      auto& for_weights = std::get<S>(kept_)[k].for_weights;
      const BackwardWeights procedure;
      std::get<S>(gradients_)
          .emplace(calls.call(micro_batch<S>(k, "weights", &reductions_of_weights_[S]), calls.memory(),
                              broadcast(procedure), made(for_weights)));
      for_weights.reset();
    }
  }

  /// The memory of the stage that gets dx.
  template <std::size_t S>
  const backend::Memory& memory_before() const noexcept {
    return std::get < S == 0 ? 0 : S - 1 > (calls_).memory();
  }
  /// The memory of the stage that gets y.
  template <std::size_t S>
  const backend::Memory& memory_after() const noexcept {
    return std::get < S == last ? S : S + 1 > (calls_).memory();
  }

  std::tuple<StageCalls<typename std::tuple_element_t<I, Stages>::model_type>...> calls_;
  const std::size_t rows_;
  const Plan batches_;  // the micro-batches
  const CheckedSchedule schedule_;
  const X& x_;
  const Targets& targets_;
  const Loss& loss_;
  std::tuple<PoolVector<Kept<I>>...> kept_;
  // What the micro-batches so far have come to:
  std::optional<LossOfBatch> loss_of_batch_;
  std::tuple<std::optional<Gradients<I>>...> gradients_;
  BatchReductions reductions_[stages];
  BatchReductions reductions_of_weights_[stages];
  Flow flow_;
  FlowScope scope_;
};

}}}  // namespace fanout::v0::detail
