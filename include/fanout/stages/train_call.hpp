// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/inline_array.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/sharded.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/broadcast.hpp>
#include <fanout/stages/batch_reductions.hpp>
#include <fanout/stages/checked_schedule.hpp>
#include <fanout/stages/first_failure.hpp>
#include <fanout/stages/flow.hpp>
#include <fanout/stages/micro_batch.hpp>
#include <fanout/stages/part_of.hpp>
#include <fanout/stages/pipeline_options.hpp>
#include <fanout/stages/procedures.hpp>
#include <fanout/stages/schedule.hpp>
#include <fanout/stages/stage.hpp>
#include <fanout/stages/stage_calls.hpp>
#include <fanout/stages/stage_error.hpp>
#include <fanout/stages/time_in_calls.hpp>
#include <fanout/tree/child_types.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a shard of a stage returns if it runs this procedure.
template <class Stage, class Procedure, class... Args>
using ProcedureReturned =
    typename StageCalls<typename Stage::model_type>::template Returned<Broadcast<const Procedure&>, Args...>;

/// A tree whose leaves are reductions, so that micro-batches can be combined as they come.
template <class X>
inline constexpr bool is_reduced_tree = false;
struct IsReducedTree {
  template <class X>
  static constexpr bool is = is_reduced_tree<std::remove_cvref_t<X>>;
};
template <class X>
  requires Rebuildable<X>
inline constexpr bool is_reduced_tree<X> = all_children<IsReducedTree, X>;
template <class Rule, class X>
inline constexpr bool is_reduced_tree<WithRule<Rule, X>> = ReducesNumbers<Rule>;
template <class Rule, class T>
inline constexpr bool is_reduced_tree<ReducedMember<Rule, T>> = ReducesNumbers<Rule>;

/// What the S-th of Stages, a tuple, takes on the way forward. Its result has the types Y and State.
template <class Stages, std::size_t S, class X>
struct TrainForward;

template <class Stages, std::size_t S, class X>
struct TrainIn {
  using type = typename TrainForward<Stages, S - 1, X>::Y;
};
template <class Stages, class X>
struct TrainIn<Stages, 0, X> {
  using type = PartOf<X>;
};

template <class Stages, std::size_t S>
using ForwardProcedure = ForwardAndSave<S + 1 == std::tuple_size_v<Stages>>;
template <class Stages, std::size_t S, class X>
using ForwardReturned = ProcedureReturned<std::tuple_element_t<S, Stages>, ForwardProcedure<Stages, S>,
                                          typename TrainIn<Stages, S, X>::type>;

template <class Stages, std::size_t S, class X>
struct TrainForward {
  using Result = gathered_t<ForwardReturned<Stages, S, X>>;
  using Y = typename Result::first_type;
  using State = typename Result::second_type;
};

/// The S-th stage on the way back. It returns {dx, gradients}, and the last stage {loss, dx, gradients}. The first one
/// returns no dx. If the stage splits backward, what it keeps for the weights takes the place of the gradients.
template <class Stages, std::size_t S, class X, class Targets, class Loss>
struct TrainBackward;

/// What a shard returns on the way back.
template <class Stages, std::size_t S, class X, class Targets, class Loss>
struct BackReturned {
  using Procedure = Backward<(S > 0)>;
  using type = ProcedureReturned<std::tuple_element_t<S, Stages>, Procedure, typename TrainForward<Stages, S, X>::State,
                                 typename TrainBackward<Stages, S + 1, X, Targets, Loss>::Dx>;
  static constexpr std::size_t dx_at = 0;
};
template <class Stages, std::size_t S, class X, class Targets, class Loss>
  requires(S + 1 == std::tuple_size_v<Stages>)
struct BackReturned<Stages, S, X, Targets, Loss> {
  using Procedure = LossAndBackward<Loss, (S > 0)>;
  using type = ProcedureReturned<std::tuple_element_t<S, Stages>, Procedure, typename TrainForward<Stages, S, X>::State,
                                 typename TrainForward<Stages, S, X>::Y, PartOf<Targets>>;
  static constexpr std::size_t dx_at = 1;
};

template <class Stages, std::size_t S, class X, class Targets, class Loss>
struct TrainBackward {
  using Returned = BackReturned<Stages, S, X, Targets, Loss>;
  using Procedure = typename Returned::Procedure;
  using Result = gathered_t<typename Returned::type>;
  static constexpr std::size_t dx_at = Returned::dx_at;
  static constexpr std::size_t end_at = dx_at + (S > 0 ? 1 : 0);
  using Dx = std::tuple_element_t<dx_at, Result>;  // of the first stage: its end, since nobody takes its dx
  using End = std::tuple_element_t<end_at, Result>;
  static constexpr bool splits = is_sharded<End>;
};

/// The gradients of the S-th stage: the end of the way back, or what backward_weights() returns.
template <class Back, class Stage>
struct TrainGradients {
  using Returned = std::tuple_element_t<Back::end_at, typename Back::Returned::type>;
  using type = typename Back::End;
};
template <class Back, class Stage>
  requires(Back::splits)
struct TrainGradients<Back, Stage> {
  using Returned = ProcedureReturned<Stage, BackwardWeights, typename Back::End>;
  using type = gathered_t<Returned>;
};

/// Why the stages of a pipeline cannot be trained.
enum class Untrainable { no, takes_keys, saves_nothing, goes_not_back, is_not_reduced };

template <class Stage>
inline constexpr bool takes_keys = false;
template <class M, class Source, class... Keys>
inline constexpr bool takes_keys<Stage<M, Source, Keys...>> = sizeof...(Keys) > 0;

template <class Stages, std::size_t S, class X, class Targets, class Loss>
constexpr Untrainable untrainable_back() noexcept {
  using Returned = typename BackReturned<Stages, S, X, Targets, Loss>::type;
  if constexpr (std::is_same_v<Returned, GoesNotBack>) {
    return Untrainable::goes_not_back;
  } else {
    using Back = TrainBackward<Stages, S, X, Targets, Loss>;
    using Gradients = typename TrainGradients<Back, std::tuple_element_t<S, Stages>>::Returned;
    constexpr bool is_last = S + 1 == std::tuple_size_v<Stages>;
    if constexpr (std::is_same_v<Gradients, GoesNotBack>) {
      return Untrainable::goes_not_back;
    } else if constexpr (!is_reduced_tree<Gradients> ||
                         (is_last && !is_reduced_tree<std::tuple_element_t<0, Returned>>)) {
      return Untrainable::is_not_reduced;
    } else if constexpr (S > 0) {
      return untrainable_back<Stages, S - 1, X, Targets, Loss>();
    } else {
      return Untrainable::no;
    }
  }
}

/// The first reason from the S-th stage on. The types of what comes after it are not known.
template <class Stages, std::size_t S, class X, class Targets, class Loss>
constexpr Untrainable untrainable() noexcept {
  if constexpr (takes_keys<std::tuple_element_t<S, Stages>>) {
    return Untrainable::takes_keys;
  } else if constexpr (std::is_same_v<ForwardReturned<Stages, S, X>, SavesNothing>) {
    return Untrainable::saves_nothing;
  } else if constexpr (S + 1 == std::tuple_size_v<Stages>) {
    return untrainable_back<Stages, S, X, Targets, Loss>();
  } else {
    return untrainable<Stages, S + 1, X, Targets, Loss>();
  }
}

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
  using Gradients = typename TrainGradients<Back<S>, std::tuple_element_t<S, Stages>>::type;
  using LossOfBatch = std::tuple_element_t<0, typename Back<last>::Result>;

  /// The values of one micro-batch at a stage.
  template <std::size_t S>
  struct Kept {
    std::optional<typename Forward<S>::Y> y;  // until the next stage has taken it; of the last one: as its state
    std::optional<typename Forward<S>::State> state;   // until the stage has gone back
    std::optional<typename Back<S>::Dx> dx;            // until the stage before has gone back
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
        flow_(3 * stages * batches_.size()) {
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
    if (failure_.exception() != nullptr) {
      const std::size_t k = failure_.step() % batches_.size();
      const std::size_t stage = failure_.step() / batches_.size() % stages;
      throw StageError(stage, k, batches_[k].rows, failure_.exception());
    }
    // The last micro-batch has what all have come to.
    return std::pair{std::move(made(loss_of_batch_)), std::tuple{std::move(made(std::get<I>(gradients_)))...}};
  }

 private:
  std::size_t step_of(std::size_t stage, std::size_t batch, Pass pass) const noexcept {
    return (static_cast<std::size_t>(pass) * stages + stage) * batches_.size() + batch;
  }

  void run_step(std::size_t step) noexcept {
    static constexpr void (TrainCall::*ways[])(std::size_t) = {&TrainCall::go_forward<I>..., &TrainCall::go_back<I>...,
                                                               &TrainCall::find_gradients<I>...};
    const EnteredScope entered(scope_);
    failure_.run(step, [&] { (this->*ways[step / batches_.size()])(step % batches_.size()); });
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
      auto& y = std::get<S - 1>(kept_)[k].y;
      keep_result<S>(k, made(y));
      y.reset();
    }
  }
  template <std::size_t S, class In>
  void keep_result(std::size_t k, const In& in) {
    const ForwardProcedure<Stages, S> procedure;
    auto [y, state] =
        std::get<S>(calls_).call(micro_batch<S>(k, "forward", nullptr), memory_after<S>(), broadcast(procedure), in);
    auto& kept = std::get<S>(kept_)[k];
    kept.y.emplace(std::move(y));
    kept.state.emplace(std::move(state));
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
    } else {
      const typename Back<S>::Procedure procedure;
      auto& dy = std::get<S + 1>(kept_)[k].dx;
      auto result = call_back<S>(k, procedure, made(dy));
      dy.reset();
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
    if constexpr (S > 0) kept.dx.emplace(std::move(std::get<Back<S>::dx_at>(result)));
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
  const CallScope* const scope_ = current_call();
  std::tuple<InlineArray<Kept<I>>...> kept_;
  // What the micro-batches so far have come to:
  std::optional<LossOfBatch> loss_of_batch_;
  std::tuple<std::optional<Gradients<I>>...> gradients_;
  BatchReductions reductions_[stages];
  BatchReductions reductions_of_weights_[stages];
  Flow flow_;
  FirstFailure failure_;
};

}}}  // namespace fanout::v0::detail
