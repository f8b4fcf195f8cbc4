// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/parallel/parallel_model.hpp>
#include <fanout/stages/pipeline_call.hpp>
#include <fanout/stages/pipeline_options.hpp>
#include <fanout/stages/stage.hpp>

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
/// takes all of it as one argument, or values of earlier stages by their keys: see Stage::takes(). The first stage
/// takes what a ParallelModel takes, but no sharded arguments. Each stage is a ParallelModel: stage<0>().
///
/// Calls are const and thread-safe. The Pipeline owns the models. It must not be moved while calls run.
template <class... Stages>
class Pipeline {
  static_assert(sizeof...(Stages) > 0, "fanout: a Pipeline needs a stage: Pipeline{stage(model, devices), ...}");

 public:
  /// Takes over the models. Throws what the constructors of ParallelModel throw.
  explicit Pipeline(Stages... stages) : Pipeline(PipelineOptions{}, std::move(stages)...) {}
  explicit Pipeline(const PipelineOptions& options, Stages... stages)
      : options_(options),
        models_{typename Stages::model_type(std::move(stages.model), stages.devices,
                                            detail::stage_options(std::move(stages.options)))...} {}

  /// Runs all stages on the rows of the arguments, and returns what the last one returns. Waits for all devices.
  ///
  /// Throws StageError if a stage throws, or if it returns another number of rows than it took. Steps that had not
  /// begun are left out, and the pipeline works afterwards. Throws ShapeMismatch as a ParallelModel does if the rows of
  /// the arguments disagree, or if the results of the micro-batches do not fit together.
  template <class... Args>
  auto operator()(Args&&... args) const {
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
    if constexpr (misfit == detail::Misfit::none) return call(args...);
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
  auto call(const Args&... args) const {
    using Call = detail::PipelineCall<std::tuple<Stages...>, std::index_sequence_for<Stages...>, Args...>;
    if constexpr (sizeof...(Stages) == 1) {
      if (options_.micro_batches <= 1) return std::get<0>(models_)(args...);
    }
    return Call(models_, options_, args...).run();
  }

  PipelineOptions options_;
  Models models_;
};

template <class... Stages>
Pipeline(Stages...) -> Pipeline<Stages...>;
template <class... Stages>
Pipeline(PipelineOptions, Stages...) -> Pipeline<Stages...>;

}}  // namespace fanout::v0
