// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>  // first, else libtorch 1.13 does not compile with clang in C++20

#include <torch/autograd.h>
#include <torch/nn/module.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/gather/sharded.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The graph of a module's forward for one shard: its ends.
class TorchGraph {
 public:
  TorchGraph() = default;
  TorchGraph(at::Tensor in, at::Tensor out) : in_(std::move(in)), out_(std::move(out)) {}

  /// Returns the gradient by `in` and the gradients by the parameters, and frees the graph. `dy` has the gradient of
  /// each row's own loss by `out`. The gradient by `in` is of each row's own loss, too; undefined if `in` holds
  /// integers. Those by the parameters are means over rows.
  std::pair<at::Tensor, torch::OrderedDict<std::string, at::Tensor>> back(const torch::nn::Module& module,
                                                                          const at::Tensor& dy) const {
    torch::OrderedDict<std::string, at::Tensor> trained("Gradient");
    for (const auto& parameter : module.named_parameters()) {
      if (parameter.value().requires_grad()) trained.insert(parameter.key(), parameter.value());
    }
    std::vector<at::Tensor> by = trained.values();
    const bool has_dx = in_.requires_grad();
    if (has_dx) by.push_back(in_);
    const bool has_graph = out_.requires_grad();  // else all are zero
    std::vector<at::Tensor> found = has_graph ? torch::autograd::grad({out_}, by, {dy}, c10::nullopt, false, true)
                                              : std::vector<at::Tensor>(by.size());
    at::Tensor dx;
    if (has_dx) {
      dx = found.back().defined() ? std::move(found.back()) : torch::zeros_like(in_);
      found.pop_back();
    }
    std::size_t next = 0;
    for (auto& parameter : trained) {
      const at::Tensor& gradient = found[next++];
      parameter.value() = gradient.defined() ? gradient / dy.size(0) : torch::zeros_like(parameter.value());
    }
    return {std::move(dx), std::move(trained)};
  }

 private:
  at::Tensor in_;
  at::Tensor out_;
};

/// Stays with its shard.
template <>
struct gather_defaults<rules::Sharded, TorchGraph> {
  using type = TorchGraph;
  static type gather(ShardResults<type>& pieces, const GatherTarget&, const LeafPath&) { return pieces.take_only(); }
};

}}}  // namespace fanout::v0::detail
