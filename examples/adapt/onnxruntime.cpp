// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model of ONNX Runtime on two cores: each has a session, which runs on its rows of the batch. The file,
// examples/data/scores.onnx or the argument, has inputs `rows` [batch, 3] and `weights` [3, 2], and outputs `scores`
// [batch, 2], `labels` [batch] and `mean`.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fanout/adapt/onnxruntime.hpp>
#include <fanout/fanout.hpp>

using namespace fanout::literals;

// [outputs]
struct Outputs {  // its members have the names of the file's outputs
  fanout::Tensor<float, 2> scores;
  fanout::Tensor<std::int64_t, 1> labels;
};
// [/outputs]

int main(int count, char** arguments) {
  const char* const file = count > 1 ? arguments[1] : "examples/data/scores.onnx";
  const auto rows = fanout::tensor<float>({{1, 0, 0}, {0, 2, 0}, {0, 0, 3}, {1, 1, 1}, {0, 0, 0}});
  const auto weights = fanout::tensor<float>({{1, 2}, {4, 3}, {5, 6}});
  // [sessions]
  const Ort::Env env;
  const fanout::ParallelModel model{fanout::onnx_sessions<Outputs>(env, file), fanout::host_devices(2)};
  const Outputs all = model(fanout::dict("rows"_k = rows, "weights"_k = fanout::broadcast(weights)));
  // [/sessions]
  for (std::size_t i = 0; i < all.labels.size(); ++i) {
    std::printf("%g %g: %d\n", static_cast<double>(all.scores(i, 0)), static_cast<double>(all.scores(i, 1)),
                static_cast<int>(all.labels[i]));
  }
}
