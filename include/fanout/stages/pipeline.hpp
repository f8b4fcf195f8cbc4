// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/call/call_scope.hpp>
#include <fanout/call/pending.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/schedule/pipeline_options.hpp>
#include <fanout/schedule/pipeline_plan.hpp>
#include <fanout/schedule/time_in_calls.hpp>
#include <fanout/stages/async_pipeline.hpp>
#include <fanout/stages/pipeline_call.hpp>
#include <fanout/stages/stage.hpp>
#include <fanout/stages/train_call.hpp>

namespace fanout { inline namespace v0 {

/// A model that is too big for one device, as stages on different devices:
///
///     fanout::Pipeline net{fanout::stage(Encoder{...}, fanout::cuda_devices({0, 1})),
///                          fanout::stage(Decoder{...}, fanout::cuda_devices({2, 3}))};
///     auto y = net(x);   // decoder(encoder(x))
///
/// A call cuts the batch into micro-batches of rows. While one is in the second stage, the next one is in the first.
/// Values stay on the devices between the stages. If `forward` treats rows one by one, the result has the same bits as
/// that of the stages called one after the other, for any number of micro-batches and devices. Random numbers go by the
/// row in the whole batch. Reductions of the last stage are combined over the micro-batches in order.
///
/// A stage returns arrays with as many rows as it takes, or tuples, dicts, maps and optionals of these. The next stage
/// takes all of it as one argument, or values of earlier stages by their keys: see stage(). The first stage
/// takes what a ParallelModel takes, but no sharded arguments. Each stage is a ParallelModel: stage<0>().
///
/// Calls are const and thread-safe. The Pipeline owns the models. It must not be moved while calls run.
template <class... Stages>
class Pipeline {
  static_assert(sizeof...(Stages) > 0, "fanout: a Pipeline needs a stage: Pipeline{stage(model, devices), ...}");

 public:
  /// Takes over the models. Throws what the constructors of ParallelModel throw, and InvalidArgument for a negative
  /// deadline.
  explicit Pipeline(Stages... stages) : Pipeline(PipelineOptions{}, std::move(stages)...) {}
  explicit Pipeline(const PipelineOptions& options, Stages... stages)
      : options_(detail::checked(options)),
        models_{typename Stages::model_type(std::move(stages.model), stages.devices,
                                            detail::stage_options(std::move(stages.options)))...} {}

  /// Runs all stages on the rows of the arguments, and returns what the last one returns. Waits for all devices.
  ///
  /// Throws StageError if a stage throws, or if it returns another number of rows than it took. Steps that had not
  /// begun are left out, and the pipeline works afterwards. Throws ShapeMismatch as a ParallelModel does if the rows of
  /// the arguments disagree, or if the results of the micro-batches do not fit together.
  /// Throws a StageError that holds a Timeout after PipelineOptions::deadline.
  template <class... Args>
  auto operator()(Args&&... args) const {
    if constexpr (fits<Args...>()) return call(args...);
  }

  /// Starts a call, and returns a Pending, without waiting:
  ///
  ///     auto pending = net.async(std::move(batch));
  ///     ...                             // the devices' threads work
  ///     auto result = pending.get();    // runs what no device has started, and waits
  ///
  /// Several batches flow through the stages, one behind the other. Takes over rvalue arguments. Borrows lvalues and
  /// the memory of views and spans: these must stay alive and unchanged until the call has ended, or until its Pending
  /// is destroyed. Starts no thread. The call has its number, and so its random numbers, from now on. An update() of a
  /// stage, and the destructor of the pipeline, run and wait for all pending calls. Results may be taken after that.
  ///
  /// If the `forward` of a stage is not const, the call is made before async() returns, so that its replicas see the
  /// batches in order. get() throws what the call throws. async() itself throws what moving the arguments throws, and
  /// std::bad_alloc.
  template <class... Args>
  auto async(Args&&... args) const {
    if constexpr (fits<Args...>()) return start(std::forward<Args>(args)...);
  }

  /// One step of training: returns the loss, and a tuple with the gradients of each stage.
  ///
  ///     auto [loss, gradients] = net.train(x, targets, [](const auto& y, View<const float, 1> t) {
  ///       ...
  ///       return std::pair{pmean(loss), dy};   // loss: the mean of these rows; dy: the gradient of each row's loss
  ///     });
  ///     net.stage<0>().update([&, &g = std::get<0>(gradients)](Encoder& encoder) { ... });
  ///
  /// `forward` of each stage returns saved(y, state). Its `backward(state, dy)`, with a context first if it wants one,
  /// returns dx and the gradients, as a pair. dy and dx have the gradient of each row's own loss: so it does not matter
  /// which shard has the row. Gradients are reductions: the sum over the shard's rows under psum(), or their mean under
  /// pmean(). `loss(y, targets)` runs for each shard of the last stage. Each of x and targets is one tree of arrays,
  /// split by rows.
  ///
  /// The order of the steps is PipelineOptions::schedule. By default the stages go forward and back in turns (1F1B):
  /// stage s of p keeps the states of at most p - s micro-batches. Gradients are combined in the order of the
  /// micro-batches, so they have the same bits for each schedule.
  ///
  /// A stage that takes values under keys returns as dx a dict with these keys; with one key, dx may stand alone. dy of
  /// a stage whose keys are taken is a dict with them. What several stages give back for one key is added in their
  /// order.
  ///
  /// The first stages may save nothing, as one that only prepares the input. They go forward only, and have
  /// no_gradients.
  ///
  /// A stage may split `backward`: `backward_input(state, dy)` returns dx and what `backward_weights(kept)` needs to
  /// return the gradients, as a pair. A schedule such as ZeroBubble runs the latter when the device has time.
  ///
  /// Throws as a call does. Throws InvalidArgument for stages with `retry`, `shrink_on_out_of_memory` or a dealt split,
  /// since a shard goes back on the device that has its state; and for a schedule that lacks a step or cannot end, or
  /// needs more micro-batches in flight than PipelineOptions::in_flight.
  template <class X, class Targets, class Loss>
  auto train(const X& x, const Targets& targets, const Loss& loss) const {
    using All = std::tuple<Stages...>;
    using detail::Untrainable;
    constexpr Untrainable why = detail::untrainable<All, 0, X, Targets, Loss>();
    static_assert(why != Untrainable::has_slices,
                  "fanout: a model with slices cannot be trained as a stage of a pipeline; give the stage one device, "
                  "and its fields no Slice");
    static_assert(why != Untrainable::key_is_not_made,
                  "fanout: a stage takes a key that no stage before it makes; return a dict with this key from one");
    static_assert(
        why != Untrainable::saves_nothing,
        "fanout: the forward of a stage that is trained returns saved(y, state), for its backward(state, dy)");
    static_assert(why != Untrainable::goes_not_back,
                  "fanout: a stage that is trained needs `backward(state, dy)`, with a context first if it wants one, "
                  "which takes what its forward saves and what the next stage, or the loss, returns; or both "
                  "`backward_input(state, dy)` and `backward_weights(kept)`");
    static_assert(why != Untrainable::gives_to_nobody,
                  "fanout: no stage takes what a stage that is trained returns, so nothing comes back to it; let a "
                  "later stage take one of its keys, or leave the stage out");
    static_assert(why != Untrainable::lacks_key_in_dx,
                  "fanout: the backward of a stage that takes values under keys returns as dx a dict with these keys");
    static_assert(why != Untrainable::is_not_reduced,
                  "fanout: the loss and the gradients of a stage are combined over shards and micro-batches; return "
                  "each as psum(x), pmean(x) or another reduction");
    if constexpr (why == Untrainable::no) {
      using Training = detail::TrainCall<All, std::index_sequence_for<Stages...>, X, Targets, Loss>;
      return Training(models_, options_, *time_, x, targets, loss).run();
    }
  }

  /// What a batch of so many rows would be cut into, and in which order train() would run the parts. Throws what a
  /// schedule that cannot run throws: see train().
  PipelinePlan plan(std::size_t rows) const {
    return std::apply(
        [&](const auto&... models) {
          return detail::make_pipeline_plan(options_, rows, {{models.devices().ids()[0], true}...});
        },
        models_);
  }

  /// A Report for each stage, whose calls are steps. Report::bubble() is the part of the time of the pipeline's calls
  /// in which the stage had none. Needs <fanout/observe.hpp>, and Options::measure of each stage, else throws Error.
  auto report() const {
    return std::apply(
        [this](const auto&... models) { return std::array{models.report().of_stage(time_->seconds())...}; }, models_);
  }

  /// The model of the i-th stage.
  template <std::size_t I>
  auto& stage() noexcept {
    return std::get<I>(models_);
  }
  template <std::size_t I>
  const auto& stage() const noexcept {
    return std::get<I>(models_);
  }

 private:
  using Models = std::tuple<typename Stages::model_type...>;
  template <class... Args>
  using Call = detail::PipelineCall<std::tuple<Stages...>, std::index_sequence_for<Stages...>, Args...>;

  /// True if the stages fit together. Refuses them if not.
  template <class... Args>
  static constexpr bool fits() {
    static_assert(
        !detail::has_sharded<Args...>,
        "fanout: a pipeline cuts its arguments into micro-batches, so none can be sharded; gather() it first");
    constexpr detail::Misfit misfit = detail::first_misfit<std::tuple<Stages...>, 0, std::remove_cvref_t<Args>...>();
    static_assert(misfit != detail::Misfit::key_is_not_made,
                  "fanout: a stage takes a key that no stage before it makes; return a dict with this key from one");
    static_assert(
        misfit != detail::Misfit::gives_no_rows,
        "fanout: a stage gives the next one something else than rows; return arrays with a row for each row "
        "that the stage takes, or tuples, dicts, maps and optionals of these; numbers, strings and reductions "
        "such as psum(x) are for the last stage");
    static_assert(
        misfit != detail::Misfit::combines_fields,
        "fanout: fields that are combined after each call, such as Mean<T>, are not for the model of a stage");
    return misfit == detail::Misfit::none;
  }

  template <class... Args>
  auto call(const Args&... args) const {
    if constexpr (sizeof...(Stages) == 1) {
      if (options_.micro_batches <= 1) return std::get<0>(models_)(args...);
    }
    return Call<Args...>(models_, options_, *time_, detail::current_call(), args...).run();
  }

  template <class... Args>
  auto start(Args&&... args) const {
    if constexpr (sizeof...(Stages) == 1) {
      if (options_.micro_batches <= 1) return std::get<0>(models_).async(std::forward<Args>(args)...);
    }
    using Async = detail::AsyncPipeline<Call<std::remove_cvref_t<Args>...>, detail::kept_t<Args>...>;
    auto* const call = detail::make_pooled<Async>(&models_, std::forward<Args>(args)...);
    Pending<typename Call<std::remove_cvref_t<Args>...>::result_type> pending(call);
    call->begin(models_, options_, *time_);
    return pending;
  }

  PipelineOptions options_;
  std::unique_ptr<detail::TimeInCalls> time_ = std::make_unique<detail::TimeInCalls>();  // calls that end use it
  Models models_;
};

template <class... Stages>
Pipeline(Stages...) -> Pipeline<Stages...>;
template <class... Stages>
Pipeline(PipelineOptions, Stages...) -> Pipeline<Stages...>;

}}  // namespace fanout::v0
