// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <fanout/fanout.hpp>
#include <fanout/worker/registry.hpp>

/// Doubles its rows, and calls back from the inside.
struct Model {
  std::function<void()> inside = [] {};

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1> x) const {
    using namespace fanout::literals;
    inside();
    auto twice = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < x.extent(0); ++i) twice[i] = 2 * x[i];
    return std::pair{twice, fanout::dict("rows"_k = fanout::psum(x.extent(0)), "first"_k = x[0])};
  }
};

using Parallel = fanout::ParallelModel<Model, fanout::DeviceSet<fanout::HostDevice>>;

struct SeenBySecond {
  int version;
  const void* registry;
  const void* worker;
};
SeenBySecond seen_by_second();

/// Makes a model and calls it in the second unit: the sum of what it returns.
float sum_in_second(const fanout::Tensor<float, 1>& x);

/// Updates in the second unit a model that the first one made; the text of the error, if there is one.
std::string update_in_second(Parallel& model);

/// The address of the model, by way of a unit that includes fwd.hpp alone.
const void* only_names(const Parallel& model, const fanout::ParallelModel<Model>* on_all,
                       const fanout::Tensor<float, 1>* tensor, const fanout::View<const float, 1>* view,
                       const fanout::Plan* plan, const fanout::Indices<fanout::HostDevice, 0, 2>* source,
                       const fanout::Error* error);
