// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include <ATen/core/ivalue.h>  // first, else libtorch 1.13 does not compile with clang in C++20

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <fanout/adapt/torch_graph.hpp>
#include <fanout/adapt/torch_modes.hpp>
#include <fanout/base/error.hpp>
#include <fanout/gather/reduction.hpp>
#include <fanout/model/saved.hpp>

namespace fanout { inline namespace v0 {

/// A module of libtorch as a model. All devices share the module by reference count. Its shards run with the libtorch
/// modes of the calling thread, so a NoGradGuard there covers all shards:
///
///     fanout::ParallelModel model{fanout::TorchModel{net}, fanout::host_devices(2)};
///
/// As stages of a Pipeline, modules that take and return one tensor are trained by their own autograd:
///
///     fanout::Pipeline net{fanout::stage(fanout::TorchModel{front}, first),
///                          fanout::stage(fanout::TorchModel{back}, second)};
///     auto [loss, gradients] = net.train(x, labels, loss_function);
///     fanout::set_gradients(*front, std::get<0>(gradients));   // then: optimizer.step()
///
/// The module's `forward` must be thread-safe: it is if it writes no member. A module in training mode with a BatchNorm
/// writes members. Use `factory()` for it, which gives each device a clone. Results can be differentiated; gradients go
/// to the module's own parameters.
template <std::derived_from<torch::nn::Module> M>
class TorchModel {
 public:
  using module_type = M;

  /// Shares ownership of the module. Throws InvalidArgument for null.
  explicit TorchModel(std::shared_ptr<M> module) : module_(std::move(module)) {
    if (module_ == nullptr)
      throw InvalidArgument(explain({.what = "no module", .where = "TorchModel", .found = "null"}));
  }
  explicit TorchModel(const torch::nn::ModuleHolder<M>& holder)
      : TorchModel(holder.is_empty() ? std::shared_ptr<M>() : holder.ptr()) {}

  template <class... Args>
  auto forward(Args&&... args) const -> decltype(std::declval<M&>().forward(std::forward<Args>(args)...)) {
    return module_->forward(std::forward<Args>(args)...);
  }

  // As a stage of a Pipeline that is trained. One tensor goes in, and one comes out.

  /// The result, and the graph of this shard for backward().
  auto forward_and_save(const at::Tensor& x) const {
    const torch::AutoGradMode with_graph(true);
    at::Tensor in = x.detach();
    if (in.is_floating_point() || in.is_complex()) in.requires_grad_();
    at::Tensor out = module_->forward(in);
    at::Tensor y = out.detach();
    return saved(std::move(y), detail::TorchGraph(std::move(in), std::move(out)));
  }
  /// The gradient of the input, undefined for integers, and the gradients of the module's parameters by their names:
  /// see set_gradients(). Does not touch `parameter.grad()`.
  auto backward(const detail::TorchGraph& graph, const at::Tensor& dy) const {
    auto [dx, gradients] = graph.back(*module_, dy);
    return std::pair{std::move(dx), pmean(std::move(gradients))};
  }

  /// The shared module. Lives at least as long as this.
  M& module() const noexcept { return *module_; }

  static TorchModes caller_state() { return {}; }

 private:
  std::shared_ptr<M> module_;
};

template <class M>
TorchModel(std::shared_ptr<M>) -> TorchModel<M>;
template <class M>
TorchModel(const torch::nn::ModuleHolder<M>&) -> TorchModel<M>;

}}  // namespace fanout::v0
