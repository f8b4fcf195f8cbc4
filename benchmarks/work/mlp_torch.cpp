// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The network in libtorch, on the CPU. Contenders:
// module          one call of the module; libtorch uses `threads` threads for each operation
// passive         the same, where OpenMP's threads do not spin while OpenBLAS's, on the same cores, work
// data_parallel   the steps of torch::nn::parallel::data_parallel on two replicas: scatter, replicate, apply, gather.
//                 Written out here, since that header does not compile without CUDA
// kept_replicas   the same without the second step: the replicas are made once
// fanout          the same module as a model of fanout, on two host devices
// In all but the first OpenBLAS has one thread, since two in each of two replicas are slower.

#include <ATen/Parallel.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fanout/adapt/torch.hpp>
#include <fanout/fanout.hpp>

#include <harness/slice.hpp>
#include <work/counting.hpp>
#include <work/devices.hpp>
#include <work/mlp.hpp>
#include <work/pin_others.hpp>

namespace {

using benchmarks::Mlp;

struct Net : torch::nn::Cloneable<Net> {
  std::int64_t width;
  std::vector<torch::nn::Linear> layers;

  explicit Net(std::int64_t features) : width(features) { Net::reset(); }

  void reset() override {
    layers.clear();
    for (std::size_t i = 0; i < Mlp::layers; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(width, width)));
    }
  }

  torch::Tensor forward(torch::Tensor x) const {
    for (const torch::nn::Linear& layer : layers) x = layer.ptr()->forward(x).relu_();
    return x;
  }
};

std::shared_ptr<Net> net_of(const Mlp& mlp) {
  const auto width = static_cast<std::int64_t>(mlp.width);
  auto net = std::make_shared<Net>(width);
  for (std::size_t i = 0; i < Mlp::layers; ++i) {
    // In the order in which OpenBLAS is faster, [in, out]: not what a new Linear has.
    const auto weights = torch::from_blob(const_cast<float*>(mlp.weights[i].data()), {width, width});
    net->layers[i]->weight.set_data(weights.clone().t());
    net->layers[i]->bias.set_data(torch::from_blob(const_cast<float*>(mlp.bias[i].data()), {width}).clone());
  }
  return net;
}

std::vector<std::shared_ptr<Net>> replicate(const std::shared_ptr<Net>& net) {
  std::vector<std::shared_ptr<Net>> replicas;
  for (int i = 0; i < 2; ++i)
    replicas.push_back(std::dynamic_pointer_cast<Net>(net->clone(torch::Device(torch::kCPU))));
  return replicas;
}

std::vector<torch::Tensor> parallel_apply(const std::vector<std::shared_ptr<Net>>& replicas,
                                          const std::vector<torch::Tensor>& inputs) {
  std::vector<torch::Tensor> outputs(replicas.size());
  std::mutex mutex;
  std::exception_ptr exception;
  at::parallel_for(0, static_cast<std::int64_t>(replicas.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    const torch::NoGradGuard no_gradients;  // it is a mode of the thread
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      try {
        auto output = replicas[i]->forward(inputs[i]);
        const std::lock_guard lock(mutex);
        outputs[i] = output;
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!exception) exception = std::current_exception();
      }
    }
  });
  if (exception) std::rethrow_exception(exception);
  return outputs;
}

}  // namespace

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  if (slice.name() != "mlp") slice.fault("no case " + slice.name());
  const std::string way = slice.contender() == "default" ? "module" : slice.contender();
  const auto rows = static_cast<std::size_t>(slice.number("rows", 64));
  const auto width = static_cast<std::size_t>(slice.number("width", 256));
  const auto threads = static_cast<int>(slice.number("threads", 2));
  const int blas_threads = way == "module" || way == "passive" ? threads : 1;
  const std::string openmp_threads = way == "fanout" ? "1" : std::to_string(threads);
  benchmarks::Environment environment{{"OMP_NUM_THREADS", openmp_threads},
                                      {"OMP_PLACES", "cores"},
                                      {"OMP_PROC_BIND", way == "fanout" ? "false" : "true"},
                                      {"OPENBLAS_NUM_THREADS", std::to_string(blas_threads)}};
  if (way == "passive") environment.emplace_back("OMP_WAIT_POLICY", "passive");
  slice.environment(benchmarks::with_counts(slice, environment));

  const Mlp mlp(rows, width);
  const torch::NoGradGuard no_gradients;
  const auto net = net_of(mlp);
  const auto x = torch::from_blob(const_cast<float*>(mlp.input.data()),
                                  {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)})
                     .clone();
  const auto run = [&](const auto& call) {
    mlp.check(slice, call().contiguous().template data_ptr<float>());
    if (way != "fanout") benchmarks::pin_others(slice.core(1));
    slice.pin_caller();
    auto report = benchmarks::measure_and_count(slice, [&] { static_cast<void>(call()); });
    mlp.set_rate(report).print();
  };

  if (way == "fanout") {
    const fanout::ParallelModel model{fanout::TorchModel{net}, benchmarks::two_host_devices(slice)};
    run([&] { return model(x); });
    return 0;
  }
  at::set_num_threads(threads);
  if (way == "data_parallel") {
    run([&] { return torch::cat(parallel_apply(replicate(net), x.chunk(2))); });
  } else if (way == "kept_replicas") {
    const auto replicas = replicate(net);
    run([&] { return torch::cat(parallel_apply(replicas, x.chunk(2))); });
  } else if (way == "module" || way == "passive") {
    run([&] { return net->forward(x); });
  } else {
    slice.fault("no contender " + way);
  }
}
