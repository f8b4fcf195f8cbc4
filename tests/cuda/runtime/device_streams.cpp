// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include <fanout/cuda/runtime/device_streams.hpp>

#include "cuda/gpus.hpp"

namespace detail = fanout::cuda::detail;

TEST_CASE("devices of a GPU have streams of their own, which are made once") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState& gpu = detail::gpu_at(0);
  std::vector<detail::DeviceStreams*> found(8);
  std::vector<std::thread> threads;
  for (detail::DeviceStreams*& streams : found) {
    threads.emplace_back([&streams, &gpu] {
      streams = &detail::streams_of(gpu, 3);
      if (streams->id().instance != 3) streams = nullptr;  // it is whole for who did not make it, too
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (detail::DeviceStreams* streams : found) CHECK(streams == found[0]);
  detail::DeviceStreams& first = detail::streams_of(gpu, 0);
  CHECK(&first != found[0]);
  CHECK(to_string(first.id()) == "cuda:0");
  CHECK(to_string(found[0]->id()) == "cuda:0#3");
  CHECK(&first.worker() != &found[0]->worker());
  CHECK(first.worker().has_thread());
  CHECK_FALSE(first.worker().bound());
}

TEST_CASE("naming a device calls nothing of CUDA, and its streams are made once, whichever threads ask") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState& gpu = detail::gpu_at(0);
  const long calls = stand_in_calls(nullptr);
  detail::DeviceStreams& streams = detail::streams_of(gpu, 17);
  streams.synchronize();
  CHECK(stand_in_calls(nullptr) == calls);
  const int alive = stand_in_alive("streams");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&streams] {
      static_cast<void>(streams.compute());
      static_cast<void>(streams.copies());
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(stand_in_alive("streams") == alive + 2);
  CHECK(streams.compute().get() != streams.copies().get());
}

TEST_CASE("a thread uses the streams of the device that it entered last, or the GPU's shared streams") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState& gpu = detail::gpu_at(0);
  detail::GpuState& other = detail::gpu_at(detail::count_gpus().count - 1);
  detail::DeviceStreams& zero = detail::streams_of(gpu, 0);
  detail::DeviceStreams& one = detail::streams_of(gpu, 1);
  detail::DeviceStreams& shared = detail::streams_of(gpu, detail::DeviceStreams::shared);
  CHECK(&detail::current_streams(gpu) == &shared);
  {
    const detail::EnteredStreams entered(one);
    CHECK(&detail::current_streams(gpu) == &one);
    if (&other != &gpu) {
      const detail::EnteredStreams elsewhere(detail::streams_of(other, 2));
      CHECK(&detail::current_streams(gpu) == &one);
      CHECK(&detail::current_streams(other) == &detail::streams_of(other, 2));
    }
    std::thread([&] { CHECK(&detail::current_streams(gpu) == &shared); }).join();
    {
      const detail::EnteredStreams inner(zero);
      CHECK(&detail::current_streams(gpu) == &zero);
    }
    CHECK(&detail::current_streams(gpu) == &one);
  }
  CHECK(&detail::current_streams(gpu) == &shared);
}

TEST_CASE("a device that cannot be entered is not entered") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState& gpu = detail::gpu_at(0);
  gpu.context();
  const int depth = stand_in_depth();
  stand_in_fail("cuCtxPushCurrent", 1, 1, cudaErrorInvalidValue);
  CHECK_THROWS_AS(detail::EnteredStreams(detail::streams_of(gpu, 1)), fanout::cuda::CudaError);
  CHECK(&detail::current_streams(gpu) == &detail::streams_of(gpu, detail::DeviceStreams::shared));
  CHECK(stand_in_depth() == depth);
}
