// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#include <fanout/cuda/runtime/gpu_state.hpp>

#include "cuda/gpus.hpp"

namespace detail = fanout::cuda::detail;
using fanout_test::message_of;

TEST_CASE("count_gpus gives the runtime's number of GPUs, also when cached") {
  int said = 0;
  if (::cudaGetDeviceCount(&said) != cudaSuccess) static_cast<void>(::cudaGetLastError());
  for (int i = 0; i < 2; ++i) CHECK(detail::count_gpus().count == std::min(said, detail::most_gpus));
}

TEST_CASE("a GPU is the same object whoever names it, and knows its place") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState& gpu = detail::gpu_at(0);
  CHECK(&detail::gpu_at(0) == &gpu);
  CHECK(gpu.index() == 0);
  CHECK(to_string(gpu.space()) == "the memory of cuda:0");
  CHECK(gpu.properties().multiProcessorCount > 0);
  CHECK(&gpu.properties() == &gpu.properties());
}

TEST_CASE("naming a GPU and asking for its properties makes no context, using it makes one there only") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  const int last = detail::count_gpus().count - 1;
  const int before = stand_in_has_context(last);
  detail::GpuState& gpu = detail::gpu_at(last);
  static_cast<void>(gpu.properties());
  CHECK(stand_in_has_context(last) == before);
  const int contexts = stand_in_contexts();
  CUcontext context = gpu.context();
  CHECK(gpu.context() == context);
  CHECK(gpu.known_context() == context);
  CHECK(stand_in_has_context(last) == 1);
  CHECK(stand_in_contexts() == contexts + (before == 0 ? 1 : 0));
}

TEST_CASE("a context that cannot be had is an error, and the next use tries again") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  detail::GpuState fresh(1);
  stand_in_fail("cuDevicePrimaryCtxRetain", 1, 1, cudaErrorDevicesUnavailable);
  CHECK_THROWS_AS(fresh.context(), fanout::cuda::CudaError);
  CHECK(fresh.context() != nullptr);
}

TEST_CASE("a GPU that is lost is not asked any more") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState& gpu = detail::gpu_at(0);
  gpu.context();
  CHECK(gpu.usable());
  detail::note(cudaErrorIllegalAddress, 0);
  CHECK_FALSE(gpu.usable());
  const long calls = stand_in_calls(nullptr);
  CHECK_THROWS_AS(gpu.context(), fanout::cuda::DeviceLost);
  CHECK_THROWS_AS(gpu.require(), fanout::cuda::DeviceLost);
  CHECK(stand_in_calls(nullptr) == calls);
}

TEST_CASE("rule 158: a child of a process that used CUDA cannot, and says so") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState& gpu = detail::gpu_at(0);
  gpu.context();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    bool right = detail::count_gpus().count == 0 && !gpu.usable();
    for (const auto& use : {+[] { detail::gpu_at(0).context(); }, +[] { detail::gpu_at(0).require(); }}) {
      right = right && message_of(use).find("Cannot re-initialize CUDA in forked subprocess") == 0;
    }
    ::_exit(right ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == EXIT_SUCCESS);
  CHECK_NOTHROW(gpu.require());
}
