// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/inline_array.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/broadcast.hpp>
#include <fanout/stages/batch_reductions.hpp>
#include <fanout/stages/first_failure.hpp>
#include <fanout/stages/flow.hpp>
#include <fanout/stages/micro_batch.hpp>
#include <fanout/stages/part_of.hpp>
#include <fanout/stages/pipeline_options.hpp>
#include <fanout/stages/procedures.hpp>
#include <fanout/stages/stage.hpp>
#include <fanout/stages/stage_calls.hpp>
#include <fanout/stages/stage_error.hpp>
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

/// The S-th of Stages, a tuple, before the last one: it takes In, and gives Y to the next one.
template <class Stages, std::size_t S, class X>
struct TrainForward;

/// What the S-th stage takes.
template <class Stages, std::size_t S, class X>
struct TrainIn {
  using type = typename TrainForward<Stages, S - 1, X>::Y;
};
template <class Stages, class X>
struct TrainIn<Stages, 0, X> {
  using type = PartOf<X>;
};

template <class Stages, std::size_t S, class X>
using ForwardReturned =
    ProcedureReturned<std::tuple_element_t<S, Stages>, ForwardAndSave, typename TrainIn<Stages, S, X>::type>;

template <class Stages, std::size_t S, class X>
struct TrainForward {
  using Result = gathered_t<ForwardReturned<Stages, S, X>>;
  using Y = typename Result::first_type;
  using State = typename Result::second_type;
};

/// The S-th stage on the way back. It returns {dx, gradients}, and the first stage {gradients}. The last stage does all
/// at once. It returns {loss, dx, gradients}.
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
  using Procedure = ForwardAndBackward<Loss, (S > 0)>;
  using type = ProcedureReturned<std::tuple_element_t<S, Stages>, Procedure, typename TrainIn<Stages, S, X>::type,
                                 PartOf<Targets>>;
  static constexpr std::size_t dx_at = 1;
};

template <class Stages, std::size_t S, class X, class Targets, class Loss>
struct TrainBackward {
  using Returned = BackReturned<Stages, S, X, Targets, Loss>;
  using Procedure = typename Returned::Procedure;
  using Result = gathered_t<typename Returned::type>;
  static constexpr std::size_t dx_at = Returned::dx_at;  // of the first stage: the gradients, since nobody takes its dx
  static constexpr std::size_t gradients_at = dx_at + (S > 0 ? 1 : 0);
  using Dx = std::tuple_element_t<dx_at, Result>;
};

/// Why the stages of a pipeline cannot be trained.
enum class Untrainable { no, takes_keys, saves_nothing, goes_not_back, is_not_reduced };

template <class Stage>
inline constexpr bool takes_keys = false;
template <class M, class Source, class... Keys>
inline constexpr bool takes_keys<Stage<M, Source, Keys...>> = sizeof...(Keys) > 0;

template <class Stages, std::size_t S, class X, class Targets, class Loss>
constexpr Untrainable untrainable_back() noexcept {
  using Back = BackReturned<Stages, S, X, Targets, Loss>;
  using Returned = typename Back::type;
  if constexpr (std::is_same_v<Returned, SavesNothing>) {
    return Untrainable::saves_nothing;
  } else if constexpr (std::is_same_v<Returned, GoesNotBack>) {
    return Untrainable::goes_not_back;
  } else {
    constexpr bool is_last = S + 1 == std::tuple_size_v<Stages>;
    constexpr std::size_t gradients_at = Back::dx_at + (S > 0 ? 1 : 0);
    if constexpr (!is_reduced_tree<std::tuple_element_t<gradients_at, Returned>> ||
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
  } else if constexpr (S + 1 == std::tuple_size_v<Stages>) {
    return untrainable_back<Stages, S, X, Targets, Loss>();
  } else if constexpr (std::is_same_v<ForwardReturned<Stages, S, X>, SavesNothing>) {
    return Untrainable::saves_nothing;
  } else {
    return untrainable<Stages, S + 1, X, Targets, Loss>();
  }
}

/// One step of training: each micro-batch goes through the stages forward, then back. Each stage goes back as soon as
/// it can, and then forward and back in turns (1F1B). So it keeps the states of as many micro-batches as there are
/// stages from it on.
template <class Stages, class Positions, class X, class Targets, class Loss>
class TrainCall;

template <class Stages, std::size_t... I, class X, class Targets, class Loss>
class TrainCall<Stages, std::index_sequence<I...>, X, Targets, Loss> {
  static constexpr std::size_t stages = sizeof...(I);
  static constexpr std::size_t last = stages - 1;
  template <std::size_t S>
  using Back = TrainBackward<Stages, S, X, Targets, Loss>;

  /// The values of one micro-batch at a stage.
  template <std::size_t S, bool is_last = S == last>
  struct Kept {
    std::optional<typename TrainForward<Stages, S, X>::Y> y;          // until the next stage has taken it
    std::optional<typename TrainForward<Stages, S, X>::State> state;  // until the stage has gone back
    std::optional<typename Back<S>::Result> back;                     // until the stage before has gone back
  };
  template <std::size_t S>
  struct Kept<S, true> {
    std::optional<typename Back<S>::Result> back;
  };

 public:
  /// Plans the call. `models` is the tuple of the stages' models. Borrows all.
  template <class Models>
  TrainCall(const Models& models, const PipelineOptions& options, const X& x, const Targets& targets, const Loss& loss)
      : calls_(std::get<I>(models)...),
        rows_(count_rows(0, x, targets).rows.value_or(0)),
        batches_(micro_batches(options, rows_, stages)),
        x_(x),
        targets_(targets),
        loss_(loss),
        kept_((static_cast<void>(I), batches_.size())...),
        flow_((2 * stages - 1) * batches_.size()) {
    const std::size_t m = batches_.size();
    for (std::size_t k = 0; k < m; ++k) {
      (flow_.add(forward(I, k), std::get<I>(calls_).main_device()), ...);
      ((I == last ? void() : flow_.add(back(I, k), std::get<I>(calls_).main_device())), ...);
    }
    for (std::size_t s = 0; s < stages; ++s) {
      for (std::size_t k = 0; k < m; ++k) {
        if (s != last) flow_.comes_before(forward(s, k), forward(s + 1, k));
        if (s != 0) flow_.comes_before(back(s, k), back(s - 1, k));
      }
      put_in_order(s);
    }
  }
  TrainCall(const TrainCall&) = delete;
  TrainCall& operator=(const TrainCall&) = delete;

  /// The loss, and the gradients of each stage.
  auto run() {
    (std::get<I>(calls_).enter(CallOrder::any), ...);
    flow_.run([this](std::size_t step) noexcept { run_step(step); });
    if (failure_.exception() != nullptr) {
      const std::size_t k = failure_.step() % batches_.size();
      throw StageError(stage_of(failure_.step()), k, batches_[k].rows, failure_.exception());
    }
    // The last micro-batch has what all have come to.
    return std::pair{std::get<0>(std::move(end_of<last>())),
                     std::tuple{std::get<Back<I>::gradients_at>(std::move(end_of<I>()))...}};
  }

 private:
  template <std::size_t S>
  auto& end_of() noexcept {
    return made(std::get<S>(kept_)[batches_.size() - 1].back);
  }

  // The steps: forward of each stage, the last of which goes back, too, then back of each stage before the last.
  std::size_t forward(std::size_t stage, std::size_t batch) const noexcept { return stage * batches_.size() + batch; }
  std::size_t back(std::size_t stage, std::size_t batch) const noexcept {
    return stage == last ? forward(last, batch) : (stages + stage) * batches_.size() + batch;
  }
  std::size_t stage_of(std::size_t step) const noexcept {
    const std::size_t row = step / batches_.size();
    return row < stages ? row : row - stages;
  }

  /// The order of the steps of a stage: 1F1B.
  void put_in_order(std::size_t s) noexcept {
    const std::size_t m = batches_.size();
    std::size_t previous = Flow::none;
    const auto next_is = [&](std::size_t step) {
      if (previous != Flow::none) flow_.goes_on(previous, step);
      previous = step;
    };
    if (s == last) {
      for (std::size_t k = 0; k < m; ++k) next_is(forward(s, k));
      return;
    }
    const std::size_t ahead = std::min(last - s, m);
    for (std::size_t k = 0; k < ahead; ++k) next_is(forward(s, k));
    for (std::size_t k = 0; k < m; ++k) {
      if (k + ahead < m) next_is(forward(s, k + ahead));
      next_is(back(s, k));
    }
  }

  void run_step(std::size_t step) noexcept {
    static constexpr void (TrainCall::*ways[])(std::size_t) = {&TrainCall::go_forward<I>..., &TrainCall::go_back<I>...};
    const EnteredScope entered(scope_);
    failure_.run(step, [&] { (this->*ways[step / batches_.size()])(step % batches_.size()); });
  }

  MicroBatch micro_batch(std::size_t k, BatchReductions* reductions) const noexcept {
    return {
        .rows = batches_[k].rows, .batch_rows = rows_, .is_last = k + 1 == batches_.size(), .reductions = reductions};
  }

  template <std::size_t S>
  void go_forward(std::size_t k) {
    if constexpr (S == 0) {
      take<S>(k, PartOf<X>{x_, batches_[k].rows});
    } else {
      auto& y = std::get<S - 1>(kept_)[k].y;
      take<S>(k, made(y));
      y.reset();
    }
  }

  template <std::size_t S, class In>
  void take(std::size_t k, const In& in) {
    const auto& calls = std::get<S>(calls_);
    auto& kept = std::get<S>(kept_)[k];
    if constexpr (S == last) {
      const typename Back<S>::Procedure procedure(loss_);
      kept.back.emplace(calls.call(micro_batch(k, &reductions_[S]), memory_before<S>(), broadcast(procedure), in,
                                   PartOf<Targets>{targets_, batches_[k].rows}));
    } else {
      const ForwardAndSave procedure;
      auto [y, state] = calls.call(micro_batch(k, nullptr), std::get<S + 1>(calls_).memory(), broadcast(procedure), in);
      kept.y.emplace(std::move(y));
      kept.state.emplace(std::move(state));
    }
  }

  template <std::size_t S>
  void go_back(std::size_t k) {
    if constexpr (S != last) {
      const typename Back<S>::Procedure procedure;
      auto& kept = std::get<S>(kept_)[k];
      auto& after = std::get<S + 1>(kept_)[k].back;
      kept.back.emplace(std::get<S>(calls_).call(micro_batch(k, &reductions_[S]), memory_before<S>(),
                                                 broadcast(procedure), made(kept.state),
                                                 std::get<Back<S + 1>::dx_at>(made(after))));
      kept.state.reset();
      if (k + 1 != batches_.size()) after.reset();
    }
  }

  /// The memory of the stage that gets dx.
  template <std::size_t S>
  const backend::Memory& memory_before() const noexcept {
    return std::get < S == 0 ? 0 : S - 1 > (calls_).memory();
  }

  std::tuple<StageCalls<typename std::tuple_element_t<I, Stages>::model_type>...> calls_;
  const std::size_t rows_;
  const Plan batches_;  // the micro-batches
  const X& x_;
  const Targets& targets_;
  const Loss& loss_;
  const CallScope* const scope_ = current_call();
  std::tuple<InlineArray<Kept<I>>...> kept_;
  BatchReductions reductions_[stages];
  Flow flow_;
  FirstFailure failure_;
};

}}}  // namespace fanout::v0::detail
