// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>  // first, else libtorch 1.13 does not compile with clang in C++20

#include <torch/autograd.h>
#include <torch/nn/module.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <fanout/adapt/torch_tensor.hpp>
#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 {

/// The gradients of a loss, a tensor with one element, for all parameters of a module that can be trained, by their
/// names. Zeros for those that the loss does not depend on. For a `forward` that trains:
///
///     auto loss = torch::nll_loss(net->forward(x), y);
///     return fanout::dict("gradients"_k = fanout::pmean(fanout::gradients(*net, loss)),
///                         "loss"_k = fanout::pmean(loss.detach()));
///
/// The mean over the shards, weighted by their rows, is the gradient of the mean over the batch. Does not touch
/// `parameter.grad()`, so devices that share the module may call it at the same time: each differentiates the graph of
/// its own shard, on its own thread. Throws InvalidArgument for a loss without a graph, as under NoGradGuard.
inline torch::OrderedDict<std::string, at::Tensor> gradients(const torch::nn::Module& module, const at::Tensor& loss) {
  torch::OrderedDict<std::string, at::Tensor> result("Gradient");
  std::vector<at::Tensor> trained;
  const auto parameters = module.named_parameters();
  for (const auto& parameter : parameters) {
    if (parameter.value().requires_grad()) trained.push_back(parameter.value());
  }
  if (trained.empty()) return result;
  if (!loss.defined() || loss.numel() != 1 || !loss.requires_grad()) {
    throw InvalidArgument(explain({.what = "a loss that has no gradients",
                                   .where = "gradients",
                                   .expected = "a tensor with one element, computed from parameters of the module",
                                   .found = !loss.defined()         ? "an undefined tensor"
                                            : !loss.requires_grad() ? "a tensor without a graph"
                                                                    : detail::torch_extents(loss)}));
  }
  const auto found = torch::autograd::grad({loss}, trained, {}, c10::nullopt, false, true);
  std::size_t next = 0;
  for (const auto& parameter : parameters) {
    if (!parameter.value().requires_grad()) continue;
    const at::Tensor& gradient = found[next++];
    result.insert(parameter.key(), gradient.defined() ? gradient : torch::zeros_like(parameter.value()));
  }
  return result;
}

/// Returns the gradients that `backward()` has added up, by the names of the parameters. A parameter without one has
/// zeros. No other device may use the module: it is a clone by `factory`, or that of the only device of a rank. Shares
/// memory with `parameter.grad()`.
inline torch::OrderedDict<std::string, at::Tensor> gradients(const torch::nn::Module& module) {
  torch::OrderedDict<std::string, at::Tensor> result("Gradient");
  for (const auto& parameter : module.named_parameters()) {
    if (!parameter.value().requires_grad()) continue;
    const at::Tensor& gradient = parameter.value().grad();
    result.insert(parameter.key(), gradient.defined() ? gradient.detach() : torch::zeros_like(parameter.value()));
  }
  return result;
}

/// Sets `parameter.grad()` of these parameters of a module, for the step of its optimizer. Takes what gradients()
/// returned, usually the mean over all shards. No call of a model may use the module meanwhile. Throws
/// StructureMismatch for a name that the module has not or has not been given, and ShapeMismatch for other extents;
/// then nothing is set.
inline void set_gradients(torch::nn::Module& module, const torch::OrderedDict<std::string, at::Tensor>& gradients) {
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  for (const auto& parameter : module.named_parameters()) {
    if (!parameter.value().requires_grad()) continue;
    const at::Tensor* const gradient = gradients.find(parameter.key());
    if (gradient == nullptr || !gradient->defined()) {
      throw StructureMismatch(explain({.what = "a parameter has no gradient",
                                       .where = parameter.key(),
                                       .advice = "pass what gradients() of the same module returned"}));
    }
    if (gradient->sizes() != parameter.value().sizes()) {
      throw ShapeMismatch(explain({.what = "a gradient does not fit its parameter",
                                   .where = parameter.key(),
                                   .expected = detail::torch_extents(parameter.value()),
                                   .found = detail::torch_extents(*gradient)}));
    }
    pairs.emplace_back(parameter.value(), *gradient);
  }
  if (pairs.size() != gradients.size()) {
    throw StructureMismatch(explain({.what = "gradients of parameters that the module does not train",
                                     .expected = std::to_string(pairs.size()),
                                     .found = std::to_string(gradients.size()),
                                     .advice = "pass what gradients() of the same module returned"}));
  }
  for (auto& [parameter, gradient] : pairs) parameter.mutable_grad() = gradient;
}

}}  // namespace fanout::v0
