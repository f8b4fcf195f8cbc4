// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include <ATen/core/ivalue.h>  // first, else libtorch 1.13 does not compile with clang in C++20

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <fanout/adapt/torch_modes.hpp>
#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 {

/// A module of libtorch as a model. All devices share the module by reference count. Its shards run with the libtorch
/// modes of the calling thread, so a NoGradGuard there covers all shards:
///
///     fanout::ParallelModel model{fanout::TorchModel{net}, fanout::host_devices(2)};
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
