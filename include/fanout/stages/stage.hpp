// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/device/device_source.hpp>
#include <fanout/parallel/options.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/tree/key.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A model and the devices that it runs on. Keys are what it takes of the results before it.
template <class M, class Source = AllVisible<HostDevice>, class... Keys>
struct Stage {
  using model_type = ParallelModel<M, Source>;

  M model;
  Source devices = {};
  Options options = {};

  /// See fanout::stage().
  template <char... Letters, class... Others>
  Stage<M, Source, Key<Letters...>, Others...> takes(Key<Letters...>, Others...) && {
    return {std::move(model), std::move(devices), std::move(options)};
  }
};

}  // namespace detail

/// A stage of a Pipeline: `stage(Encoder{...}, cuda_devices({0, 1}))`. It takes what a ParallelModel takes. Takes over
/// the model. The stage has a function `takes`, for values of earlier stages under keys, as one argument each:
/// `stage(m, devices).takes("x"_k, "skip"_k)`. Stages before it return dicts with them. If several do, the last one
/// counts. Without keys, it takes the whole result of the stage before. If the model has a Slice, each of its devices
/// takes all rows of a micro-batch.
template <class M, class Source = AllVisible<HostDevice>>
detail::Stage<M, Source> stage(M model, Source devices = {}, Options options = {}) {
  return {std::move(model), std::move(devices), std::move(options)};
}

namespace detail {

/// Throws InvalidArgument if a stage has options that are not for stages.
inline Options stage_options(Options&& options) {
  if (options.ranks != nullptr) {
    throw InvalidArgument(explain({.what = "a stage of a pipeline with ranks",
                                   .where = "Options::ranks",
                                   .expected = "stages on devices of this process",
                                   .advice = "leave `ranks` out: each process calls a pipeline of its own"}));
  }
  return std::move(options);
}

/// Throws InvalidArgument if a stage that is trained has options by which a shard may run on another device than the
/// one that has its state.
inline void check_trained(const Options& options, bool is_dealt, std::size_t stage) {
  const char* const option = options.retry.times.value() > 0           ? "Options::retry"
                             : options.shrink_on_out_of_memory.value() ? "Options::shrink_on_out_of_memory"
                             : is_dealt                                ? "Options::split, which deals its plans"
                                                                       : nullptr;
  if (option == nullptr) return;
  throw InvalidArgument(explain({.what = "a stage that is trained may run a shard on another device than planned",
                                 .where = Text() << "stage " << stage << ", " << option,
                                 .expected = "shards that go back on the device that has their state",
                                 .advice = "leave the option out"}));
}

}  // namespace detail
}}  // namespace fanout::v0
