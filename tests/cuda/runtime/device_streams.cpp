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

TEST_CASE("naming a device makes no context, and its streams are made once, whichever threads ask") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState& gpu = detail::gpu_at(0);
  // If the machine has several NUMA nodes, the GPU's bus id is asked for.
  const auto calls_made = [] { return stand_in_calls(nullptr) - stand_in_calls("cudaDeviceGetPCIBusId"); };
  const long calls = calls_made();
  const int contexts = stand_in_contexts();
  detail::DeviceStreams& streams = detail::streams_of(gpu, 17);
  streams.synchronize();
  CHECK(calls_made() == calls);
  CHECK(stand_in_contexts() == contexts);
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

namespace {

/// A capture of a stream by this thread, in the mode that is disturbed by other threads.
class GlobalCapture {
 public:
  GlobalCapture() : stream_(0) {
    const fanout::cuda::DeviceGuard entered(0);
    REQUIRE(::cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  }
  cudaError_t end() {
    const fanout::cuda::DeviceGuard entered(0);
    cudaGraph_t graph = nullptr;
    const cudaError_t status = ::cudaStreamEndCapture(stream_.get(), &graph);
    if (graph != nullptr) CHECK(::cudaGraphDestroy(graph) == cudaSuccess);
    static_cast<void>(::cudaGetLastError());
    return status;
  }

 private:
  fanout::cuda::Stream stream_;
};

/// Work of a device's own thread: waits for the device, which fails if that disturbs a capture.
struct WaitingTask : fanout::detail::Task {
  explicit WaitingTask(detail::DeviceStreams& where) : streams(where) {
    prepare([](fanout::detail::Task& task) noexcept {
      auto& self = static_cast<WaitingTask&>(task);
      self.said = fanout_test::message_of([&] {
        const detail::EnteredStreams entered(self.streams);
        self.streams.compute().synchronize();
      });
    });
  }
  detail::DeviceStreams& streams;
  std::string said;
};

}  // namespace

TEST_CASE("a device's own thread does not disturb a capture of another thread") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  detail::DeviceStreams& streams = detail::streams_of(detail::gpu_at(0), 0);
  static_cast<void>(streams.compute());
  GlobalCapture capture;
  WaitingTask task(streams);
  streams.worker().post(task);
  task.wait(0, fanout::detail::fork_epoch());
  CHECK(task.said == "");
  CHECK(capture.end() == cudaSuccess);
}

TEST_CASE("a user's thread keeps its mode, and a wait there that disturbs a capture says what to do") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  detail::DeviceStreams& streams = detail::streams_of(detail::gpu_at(0), 0);
  static_cast<void>(streams.compute());
  GlobalCapture capture;
  std::string said;
  std::thread([&] {
    {
      const detail::EnteredStreams entered(streams);
      said = fanout_test::message_of([&] { streams.compute().synchronize(); });
    }
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CHECK(::cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(mode == cudaStreamCaptureModeGlobal);
  }).join();
  CHECK(said.find("cudaErrorStreamCaptureUnsupported") != std::string::npos);
  CHECK(said.find("; capture a graph in cudaStreamCaptureModeThreadLocal, on a thread that does not use fanout") !=
        std::string::npos);
  CHECK(capture.end() == cudaErrorStreamCaptureInvalidated);
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
