// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a model launches a graph of its own. It is compiled only: the stand-in has no graphs.
#include <fanout/cuda.hpp>

// [graph]
/// Steps of a simulation whose kernels were captured before, one graph for each GPU.
class Simulation {
 public:
  explicit Simulation(cudaGraph_t graph) {
    fanout::cuda::check(cudaGraphInstantiate(&steps_, graph, 0), "cudaGraphInstantiate");
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() { cudaGraphExecDestroy(steps_); }

  // Not const: a graph runs once at a time. Its kernels know their memory, so the state stays in the model.
  void forward(fanout::Context auto& ctx) {
    fanout::cuda::check(cudaGraphLaunch(steps_, ctx.stream().get()), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t steps_ = nullptr;
};
// [/graph]

void run(cudaGraph_t (*capture)(const fanout::CudaDevice&), int steps) {
  const auto make = [capture](const fanout::CudaDevice& device) { return Simulation(capture(device)); };
  const fanout::ParallelModel model{fanout::factory(make), fanout::cuda_devices()};
  for (int i = 0; i < steps; ++i) model(fanout::on_all());
}
