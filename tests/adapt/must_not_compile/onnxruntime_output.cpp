// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the outputs of an OnnxSession are Tensors, numbers with a rule such as Mean<float>, or a struct, dict or tuple of these (this diagnostic shows another type)
#include <tuple>
#include <vector>

#include <fanout/adapt/onnxruntime.hpp>
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Outputs = std::tuple<fanout::Tensor<float, 2>, fanout::Mean<float>>;
#else
using Outputs = std::tuple<fanout::Tensor<float, 2>, std::vector<float>>;
#endif

int main() {
  const Ort::Env env;
  const fanout::ParallelModel model{fanout::onnx_sessions<Outputs>(env, "model.onnx"), fanout::host_devices()};
}
