// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstdlib>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <fanout/cuda/runtime/device_guard.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;

TEST_CASE("rule 155: a guard leaves a thread without a context as it was, and makes none on other GPUs") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  cuda::detail::gpu_at(1).context();
  const int contexts = stand_in_contexts();
  std::thread([] {
    CHECK(stand_in_depth() == 0);
    {
      const cuda::DeviceGuard entered(1);
      CHECK(stand_in_current() == 1);
    }
    CHECK(stand_in_depth() == 0);
    CHECK(stand_in_current() == -1);
  }).join();
  CHECK(stand_in_contexts() == contexts);
}

TEST_CASE("a guard ends with an exception, too") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const int depth = stand_in_depth();
  try {
    const cuda::DeviceGuard entered(0);
    throw 1;
  } catch (int) {
  }
  CHECK(stand_in_depth() == depth);
  CHECK_THROWS_AS(cuda::DeviceGuard(-1), fanout::InvalidDeviceId);
  CHECK(stand_in_depth() == depth);
}

TEST_CASE("a guard that ends in the child of a fork leaves CUDA alone") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  pid_t child = -1;
  long calls = 0;
  {
    const cuda::DeviceGuard entered(0);
    calls = stand_in_calls(nullptr);
    child = ::fork();
    REQUIRE(child >= 0);
  }
  if (child == 0) ::_exit(stand_in_calls(nullptr) == calls ? EXIT_SUCCESS : EXIT_FAILURE);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == EXIT_SUCCESS);
}

TEST_CASE("a quiet guard enters nothing if the GPU cannot be used") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  cuda::detail::GpuState unused(0);
  CHECK_FALSE(cuda::detail::QuietGuard(unused).entered());
  cuda::detail::GpuState& gpu = cuda::detail::gpu_at(0);
  CHECK(gpu.context() != nullptr);
  CHECK(cuda::detail::QuietGuard(gpu).entered());
  stand_in_set_unloading(1);
  CHECK_FALSE(cuda::detail::QuietGuard(gpu).entered());
  stand_in_set_unloading(0);
  CHECK(gpu.usable());
  cuda::detail::note(cudaErrorIllegalAddress, 0);
  CHECK_FALSE(cuda::detail::QuietGuard(gpu).entered());
}
