// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/duration.hpp>
#include <fanout/parallel/options.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Splits evenly, and notes how long `forward` and its work on the devices took in each call.
struct TimedSplit {
  std::vector<double> seconds = {};

  Plan operator()(std::size_t rows, std::size_t devices) const { return EvenSplit{}(rows, devices); }
  void observe(const CallTimes& call) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < call.plan->size(); ++i) sum += call.shards[i].ended - call.shards[i].forward;
    seconds.push_back(1e-9 * static_cast<double>(sum));
  }
};

/// The median of the times of calls, without the first two: these allocate, and warm caches and devices up. Makes five
/// calls or more, up to a hundred, until a tenth of a second has passed.
template <class Model, class X>
double median_seconds(const Model& model, const X& x) {
  constexpr std::size_t warm_up = 2;
  constexpr std::size_t least = 5;
  constexpr std::size_t most = 100;
  const Clock::Time end = Clock::after(Duration(std::chrono::milliseconds(100)));
  for (std::size_t i = 0; i < warm_up + least || (i < most && Clock::now() < end); ++i) static_cast<void>(model(x));
  std::vector<double> seconds = model.template split<TimedSplit>().seconds;
  seconds.erase(seconds.begin(), seconds.begin() + warm_up);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

template <class Source, class X, class Layer, class... Others>
void measure_layers_from(std::vector<double>& seconds, const Source& devices, const X& x, const Layer& layer,
                         const Others&... others) {
  const ParallelModel<Layer, Source> model(layer, devices, Options{.split = TimedSplit{}});
  seconds.push_back(median_seconds(model, x));
  if constexpr (sizeof...(Others) > 0) measure_layers_from(seconds, devices, model(x), others...);
}

}  // namespace detail

/// The seconds that each layer takes on these devices, for partition_layers(): the first one for x, and each other one
/// for what the layer before returns. Copies the layers, one at a time. `devices` is one device as a rule. Measures the
/// work of `forward`, not the copies to the devices. Leaves the first calls out. Takes a tenth of a second a layer, or
/// seven calls if these take longer.
///
/// Throws what the calls throw.
template <class Source, class X, class... Layers>
[[nodiscard]] std::vector<double> measure_layers(const Source& devices, const X& x, const Layers&... layers) {
  std::vector<double> seconds;
  if constexpr (sizeof...(Layers) > 0) detail::measure_layers_from(seconds, devices, x, layers...);
  return seconds;
}

}}  // namespace fanout::v0
