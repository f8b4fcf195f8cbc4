// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many calls of CUDA a call of a model makes.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <utility>

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

/// How many calls of CUDA `call()` makes when what is kept has been made. Some are left out that do not come each time:
/// a thread sets its capture mode at its first use of CUDA, and on a busy machine a GPU's thread may come to that late,
/// since the caller takes back its shards until then.
template <class F>
long calls_of(const F& call) {
  for (int i = 0; i < 3; ++i) call();
  const int depth = stand_in_depth();
  stand_in_forget_counts();
  call();
  CHECK(stand_in_depth() == depth);
  CHECK(stand_in_calls("cudaEventCreateWithFlags") == 0);
  const long modes = stand_in_calls("cudaThreadExchangeStreamCaptureMode");
  CHECK(modes <= fanout::cuda::device_count());
  return stand_in_calls(nullptr) - modes;
}

Tensor<float, 1> first_numbers(std::size_t size) {
  Tensor<float, 1> x(size);
  for (std::size_t i = 0; i < size; ++i) x[i] = static_cast<float>(i);
  return x;
}

const auto doubled = [](Context auto& ctx, View<const float, 1> x) {
  auto y = fanout::output<float>(ctx);
  fanout::launch(ctx, x.size(), Doubled{x, y});
  return y;
};

}  // namespace

TEST_CASE_FIXTURE(fanout_test::Watched, "there and back, a small array takes 6 calls of CUDA on each GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  // The context is entered, the input copied, the kernel launched, the output copied, the stream waited for, and the
  // context left: that is on the caller's thread. The context of a GPU's own thread stays.
  const int gpus = fanout::cuda::device_count();
  const ParallelModel model{doubled, fanout::cuda_devices(), Options{.output = fanout::DeviceId{"host"}}};
  const Tensor<float, 1> x = first_numbers(840);
  Tensor<float, 1> y;
  CHECK(calls_of([&] { y = model(x); }) <= 6 * gpus);
  CHECK(stand_in_calls("cudaMemcpyAsync") == 2 * gpus);
  CHECK(stand_in_calls("cudaMallocFromPoolAsync") == 0);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == 2 * x[i]);
}

TEST_CASE_FIXTURE(fanout_test::Watched, "there and back, 16 small arrays take 8 calls of CUDA on each GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  const int gpus = fanout::cuda::device_count();
  const auto forward = []<std::size_t... I>(std::index_sequence<I...>) {
    return [](Context auto& ctx, const std::array<View<const float, 1>, 16>& all) {
      const std::array outputs{(static_cast<void>(I), fanout::output<float>(ctx))...};
      const std::array to{View<float, 1>(outputs[I])...};
      fanout::launch(ctx, all[0].size(), [all, to](std::size_t i) { ((to[I][i] = 2 * all[I][i]), ...); });
      return outputs;
    };
  }
  (std::make_index_sequence<16>());
  const ParallelModel model{forward, fanout::cuda_devices(), Options{.output = fanout::DeviceId{"host"}}};
  std::array<Tensor<float, 1>, 16> x;
  for (std::size_t k = 0; k < 16; ++k) {
    x[k] = first_numbers(100);
    x[k][0] = static_cast<float>(k);
  }
  std::array<Tensor<float, 1>, 16> y;
  CHECK(calls_of([&] { y = model(x); }) <= 8 * gpus);
  CHECK(stand_in_calls("cudaMemcpyAsync") == 2 * gpus);
  for (std::size_t k = 0; k < 16; ++k) {
    for (std::size_t i = 0; i < 100; ++i) CHECK(y[k][i] == 2 * x[k][i]);
  }
}

TEST_CASE_FIXTURE(fanout_test::Watched,
                  "on an array that is on the GPU, a call takes 4 calls of CUDA, and one block for all results") {
  if (!fanout_test::has_stand_in(1)) return;
  const ParallelModel model{doubled, fanout::cuda_devices({0})};
  const auto x = fanout::to(first_numbers(20'000), fanout::CudaDevice(0));
  Tensor<float, 1> y = model(x);
  const float* const block = y.data();
  // The context is entered and left, the kernel launched, the stream waited for.
  CHECK(calls_of([&] {
          y = {};
          y = model(x);
        }) <= 4);
  CHECK(y.data() == block);
  const Tensor<float, 1> first = std::move(y);
  y = model(x);
  CHECK(y.data() != first.data());
  const auto there = fanout::to_host(y);
  for (std::size_t i = 0; i < there.size(); ++i) CHECK(there[i] == 2 * static_cast<float>(i));
}
