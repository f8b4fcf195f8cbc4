// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libtorch: contenders parallel_for (of ATen), parallel_apply (torch::nn::parallel's way of running modules, over kept
// replicas) and data_parallel, which are the four steps of torch::nn::parallel::data_parallel: chunk, clone, apply,
// cat. The latter two are written out here, since that header does not compile in a libtorch that was built without
// CUDA.

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <exception>
#include <mutex>
#include <vector>

#include <dispatch/cases.hpp>
#include <dispatch/openmp.hpp>

namespace {

using benchmarks::Bodies;

/// Which bodies the modules run: there is one such object in a process.
const Bodies* bodies_now = nullptr;

struct ModuleImpl : torch::nn::Cloneable<ModuleImpl> {
  std::size_t rank = 0;

  void reset() override {}
  torch::Tensor forward(const torch::Tensor& input) const {
    (*bodies_now)(rank);
    return input;
  }
};
TORCH_MODULE(Module);

/// As torch::nn::parallel::parallel_apply does it: gradients as the caller has them, the first failure thrown.
std::vector<torch::Tensor> parallel_apply(std::vector<Module>& modules, const std::vector<torch::Tensor>& inputs) {
  std::vector<torch::Tensor> outputs(inputs.size());
  std::mutex mutex;
  std::exception_ptr failure;
  const bool gradients = torch::GradMode::is_enabled();
  at::parallel_for(0, static_cast<std::int64_t>(modules.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const auto i = static_cast<std::size_t>(k);
      try {
        const torch::AutoGradMode mode(gradients);
        outputs[i] = modules[i]->forward(inputs[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  });
  if (failure) std::rethrow_exception(failure);
  return outputs;
}

std::vector<Module> replicate(const Module& module) {
  std::vector<Module> replicas;
  for (std::size_t i = 0; i < 2; ++i) {
    replicas.emplace_back(std::dynamic_pointer_cast<ModuleImpl>(module->clone()));
    replicas.back()->rank = i;
  }
  return replicas;
}

}  // namespace

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment(benchmarks::openmp_environment(slice));
  at::set_num_threads(2);
  const std::string contender = slice.contender() == "default" ? "parallel_for" : slice.contender();
  const torch::NoGradGuard no_gradients;
  const torch::Tensor input = torch::zeros({2, 1});
  const Module original;
  std::vector<Module> kept = replicate(original);
  const std::vector<torch::Tensor> halves = input.chunk(2);
  if (contender == "parallel_for") {
    return benchmarks::run_dispatch(slice, [](const Bodies& bodies) {
      at::parallel_for(0, 2, 1, [&bodies](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) bodies(static_cast<std::size_t>(i));
      });
    });
  }
  if (contender == "parallel_apply") {
    return benchmarks::run_dispatch(slice, [&](const Bodies& bodies) {
      bodies_now = &bodies;
      parallel_apply(kept, halves);
    });
  }
  if (contender == "data_parallel") {
    return benchmarks::run_dispatch(slice, [&](const Bodies& bodies) {
      bodies_now = &bodies;
      const std::vector<torch::Tensor> inputs = input.chunk(2);
      std::vector<Module> replicas = replicate(original);
      const torch::Tensor output = torch::cat(parallel_apply(replicas, inputs));
    });
  }
  slice.fault("no contender " + contender);
}
