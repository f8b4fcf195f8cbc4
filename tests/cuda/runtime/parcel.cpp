// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

#include <fanout/cuda.hpp>
#include <fanout/cuda/runtime/parcel.hpp>

#include "cuda/gpus.hpp"
#include "cuda/host_launcher.hpp"
#include "cuda/stand_in/stand_in.h"

using fanout::Context;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout::cuda::detail::EnteredStreams;
using fanout::cuda::detail::Parcel;

namespace {

fanout::cuda::detail::DeviceStreams& first_device() {
  return fanout::cuda::detail::streams_of(fanout::cuda::detail::gpu_at(0), 0);
}

/// What lies on the GPU under these addresses, once its work is done.
template <class... T>
std::vector<float> values_at(const T*... on_gpu) {
  first_device().synchronize();
  std::vector<float> values(sizeof...(T));
  std::size_t i = 0;
  const auto fetch = [&](const void* from) {
    fanout::cuda::check(::cudaMemcpy(&values[i++], from, sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy", 0);
  };
  (fetch(on_gpu), ...);
  return values;
}

const auto incremented = [](Context auto& ctx, View<const float, 1> x) {
  auto y = fanout::output<float>(ctx);
  fanout::launch(ctx, x.size(), [x, to = View<float, 1>(y)](std::size_t i) { to[i] = x[i] + 1; });
  return y;
};

Options to_host() { return {.output = fanout::DeviceId{"host"}}; }

}  // namespace

TEST_CASE_FIXTURE(fanout_test::Watched, "what is sent before does not overwrite room that was given meanwhile") {
  if (!fanout_test::has_gpus(1)) return;
  const EnteredStreams entered(first_device());
  Parcel& parcel = *entered.parcel();
  const std::array<float, 4> from{1, 2, 3, 4};
  auto* const one = static_cast<float*>(parcel.add(&from[0], sizeof(float)));
  auto* const two = static_cast<float*>(parcel.add(&from[1], sizeof(float)));
  auto* const room = static_cast<float*>(parcel.add(sizeof(float)));  // sends the two
  fanout::cuda::check(::cudaMemcpyAsync(room, two, sizeof(float), cudaMemcpyDeviceToDevice, parcel.stream().get()),
                      "cudaMemcpyAsync", 0);
  auto* const three = static_cast<float*>(parcel.add(&from[2], sizeof(float)));
  entered.inputs_are_made();
  CHECK(values_at(one, two, room, three) == std::vector<float>{1, 2, 2, 3});
  CHECK(parcel.has(one));
  CHECK_FALSE(parcel.has(from.data()));
  for (int i = 0; i < 4; ++i) parcel.release();
}

TEST_CASE_FIXTURE(fanout_test::Watched,
                  "a parcel takes what is small until it is full, and is empty when it is given back") {
  if (!fanout_test::has_gpus(1)) return;
  const Parcel* full = nullptr;
  {
    const EnteredStreams entered(first_device());
    Parcel& parcel = *entered.parcel();
    full = &parcel;
    CHECK(parcel.add(Parcel::small + 1) == nullptr);
    for (std::size_t i = 0; i < Parcel::bytes / Parcel::small; ++i) CHECK(parcel.add(Parcel::small) != nullptr);
    CHECK(parcel.add(1) == nullptr);
    for (std::size_t i = 0; i < Parcel::bytes / Parcel::small; ++i) parcel.release();
  }
  const EnteredStreams entered(first_device());
  CHECK(entered.parcel() == full);
  CHECK(entered.parcel()->add(Parcel::small) != nullptr);
  entered.parcel()->release();
}

TEST_CASE_FIXTURE(fanout_test::Watched, "arrays that do not fit into a parcel are copied by themselves") {
  if (!fanout_test::has_gpus(1)) return;
  const ParallelModel model{
      [](Context auto& ctx, const std::vector<View<const float, 1>>& all, View<const float, 1> large) {
        std::array<View<const float, 1>, 40> from;
        for (std::size_t k = 0; k < 40; ++k) from[k] = all[k];
        auto y = fanout::output<float>(ctx);
        fanout::launch(ctx, large.size(), [from, large, to = View<float, 1>(y)](std::size_t i) {
          to[i] = large[i];
          for (const auto& each : from) to[i] += each[i];
        });
        return y;
      },
      fanout::cuda_devices(), to_host()};
  constexpr std::size_t rows = 50'000;  // 200 KB on one device, 25 KB on eight
  std::vector<Tensor<float, 1>> all;
  for (std::size_t k = 0; k < 40; ++k) {
    all.emplace_back(rows);
    for (std::size_t i = 0; i < rows; ++i) all[k][i] = static_cast<float>((i + k) % 8);
  }
  const auto y = model(all, all[0]);
  for (std::size_t i = 0; i < rows; i += 97) CHECK(y[i] == static_cast<float>(5 * 28 + i % 8));
}

TEST_CASE_FIXTURE(fanout_test::Watched, "more results than a parcel notes arrive, too") {
  if (!fanout_test::has_gpus(1)) return;
  const auto forward = []<std::size_t... I>(std::index_sequence<I...>) {
    return [](Context auto& ctx, View<const float, 1> x) {
      const std::array outputs{(static_cast<void>(I), fanout::output<float>(ctx))...};
      const std::array to{View<float, 1>(outputs[I])...};
      fanout::launch(ctx, x.size(), [x, to](std::size_t i) { ((to[I][i] = x[i] + I), ...); });
      return outputs;
    };
  }
  (std::make_index_sequence<40>());
  const ParallelModel model{forward, fanout::cuda_devices(), to_host()};
  const auto y = model(fanout::tensor<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (std::size_t k = 0; k < 40; ++k) {
    for (std::size_t i = 0; i < 9; ++i) CHECK(y[k][i] == static_cast<float>(1 + i + k));
  }
}

TEST_CASE_FIXTURE(fanout_test::Watched, "more calls in flight than there are parcels get their own results") {
  if (!fanout_test::has_gpus(1)) return;
  const ParallelModel model{incremented, fanout::cuda_devices(), to_host()};
  std::vector<fanout::Pending<Tensor<float, 1>>> pending;
  std::vector<Tensor<float, 1>> inputs;
  for (std::size_t k = 0; k < 40; ++k) {
    inputs.emplace_back(64);
    for (std::size_t i = 0; i < 64; ++i) inputs[k][i] = static_cast<float>(100 * k + i);
  }
  for (const auto& x : inputs) pending.push_back(model.async(x));
  for (std::size_t k = 0; k < 40; ++k) {
    const auto y = pending[k].get();
    for (std::size_t i = 0; i < 64; ++i) CHECK(y[i] == static_cast<float>(100 * k + i + 1));
  }
}

TEST_CASE_FIXTURE(fanout_test::Watched,
                  "empty_cache() releases the memory of parcels, and the next call gets it again") {
  if (!fanout_test::has_stand_in(1)) return;
  const ParallelModel model{incremented, fanout::cuda_devices(), to_host()};
  const auto x = fanout::tensor<float>({1, 2, 3});
  const std::size_t allocated = fanout::cuda::memory_allocated(0);
  CHECK(model(x)[2] == 4);
  CHECK(fanout::cuda::memory_allocated(0) == allocated);
  fanout::cuda::empty_cache();
  CHECK(fanout::cuda::memory_allocated(0) == allocated);
  stand_in_forget_counts();
  CHECK(model(x)[2] == 4);
  CHECK(stand_in_calls("cudaMallocFromPoolAsync") > 0);
}
