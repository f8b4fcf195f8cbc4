// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many calls of CUDA a call of a model makes.
#include <doctest/doctest.h>

#include <cstddef>

#include <fanout/cuda.hpp>

#include "cuda/gpus.hpp"
#include "cuda/host_launcher.hpp"
#include "cuda/stand_in/stand_in.h"

using fanout::Context;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

namespace {

struct Doubled {
  View<const float, 1> from;
  View<float, 1> to;
  void operator()(std::size_t i) const { to[i] = 2 * from[i]; }
};

}  // namespace

TEST_CASE_FIXTURE(fanout_test::Watched, "host to host, a call of a model makes at most 14 calls of CUDA on each GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  // The input is allocated, sent, staged and released: 4. The output is allocated, fetched, awaited and released: 4.
  // The kernel, its completion and the wait for that: 3. A context is entered and left, and entered for the release: 3.
  // One query more asks if the GPU has read a chunk of staging memory that is full, or that another stream used last. A
  // thread sets its capture mode at its first use of CUDA. On a busy machine a GPU's thread may come to that late,
  // since the caller takes back its shards until then.
  const auto forward = [](Context auto& ctx, View<const float, 1> x) {
    auto y = fanout::output<float>(ctx);
    fanout::launch(ctx, x.size(), Doubled{x, y});
    return y;
  };
  const int gpus = fanout::cuda::device_count();
  const ParallelModel model{forward, fanout::cuda_devices(), Options{.output = fanout::DeviceId{"host"}}};
  Tensor<float, 1> x(840);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (int i = 0; i < 3; ++i) model(x);  // makes what is kept
  const int depth = stand_in_depth();
  stand_in_forget_counts();
  const auto y = model(x);
  const long queries = stand_in_calls("cudaEventQuery");
  CHECK(queries <= gpus);
  const long modes = stand_in_calls("cudaThreadExchangeStreamCaptureMode");
  CHECK(modes <= gpus);
  CHECK(stand_in_calls(nullptr) - queries - modes <= 14 * gpus);
  CHECK(stand_in_calls("cudaEventCreateWithFlags") == 0);
  CHECK(stand_in_depth() == depth);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == 2 * x[i]);
}
