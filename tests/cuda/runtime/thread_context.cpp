// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/thread_context.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;
namespace detail = fanout::cuda::detail;

namespace {

long context_calls() {
  return stand_in_calls("cuCtxPushCurrent") + stand_in_calls("cuCtxPopCurrent") + stand_in_calls("cuCtxSetCurrent");
}

/// Runs f on a thread that has never used CUDA, and on one that has a current device. Both are as before afterwards.
template <class F>
void on_threads(const F& f) {
  std::thread([&f] {
    f();
    CHECK(stand_in_depth() == 0);
  }).join();
  std::thread([&f] {
    REQUIRE(::cudaSetDevice(1) == cudaSuccess);
    f();
    CHECK(stand_in_depth() == 1);
    CHECK(stand_in_current() == 1);
  }).join();
}

}  // namespace

TEST_CASE("guards inside of a held context push once, and change it only for another GPU") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  detail::GpuState& first = detail::gpu_at(0);
  detail::GpuState& second = detail::gpu_at(1);
  for (detail::GpuState* gpu : {&first, &second}) CHECK(gpu->context() != nullptr);
  on_threads([&] {
    const long before = context_calls();
    {
      const detail::HeldContext held;
      CHECK(context_calls() == before);
    }
    CHECK(context_calls() == before);
    {
      const detail::HeldContext held;
      for (int i = 0; i < 3; ++i) {
        const detail::OnGpu entered(first);
        CHECK(stand_in_current() == 0);
      }
      CHECK(context_calls() == before + 1);
      const detail::OnGpu entered(second);
      CHECK(stand_in_current() == 1);
      CHECK(context_calls() == before + 2);
      const detail::QuietGuard again(second);
      CHECK(again.entered());
      CHECK(context_calls() == before + 2);
    }
    CHECK(context_calls() == before + 3);
  });
}

TEST_CASE("what enters a device, or sets one, inside of a held context comes back to it") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  detail::GpuState& first = detail::gpu_at(0);
  detail::DeviceStreams& streams = detail::streams_of(detail::gpu_at(1), 0);
  on_threads([&] {
    const detail::HeldContext held;
    const detail::OnGpu outer(first);
    for (int i = 0; i < 2; ++i) {
      const detail::EnteredStreams entered(streams);
      CHECK(stand_in_current() == 1);
      const long before = context_calls();
      const detail::OnGpu again(1);
      CHECK(context_calls() == before);
      {
        const detail::HeldContext nested;
        const detail::OnGpu other(first);
        CHECK(stand_in_current() == 0);
      }
      CHECK(stand_in_current() == 1);
      REQUIRE(::cudaSetDevice(0) == cudaSuccess);  // by the user's code, which leaves it so
    }
    const detail::OnGpu later(1);
    CHECK(stand_in_current() == 1);
    {
      const cuda::DeviceGuard guard(0);
      CHECK(stand_in_current() == 0);
    }
    CHECK(stand_in_current() == 1);
  });
}

TEST_CASE("without a held context, guards nest") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  on_threads([] {
    const int depth = stand_in_depth();
    {
      const detail::OnGpu outer(0);
      {
        const detail::OnGpu same(0);
        CHECK(stand_in_depth() == depth + 1);
        const detail::OnGpu inner(1);
        CHECK(stand_in_depth() == depth + 2);
        CHECK(stand_in_current() == 1);
      }
      CHECK(stand_in_current() == 0);
    }
    CHECK(stand_in_depth() == depth);
  });
}

TEST_CASE("a call with any current device is made again if that device is lost") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  detail::GpuState& first = detail::gpu_at(0);
  detail::GpuState& second = detail::gpu_at(1);
  const auto failing_on = [](int lost) {
    return [lost] { return stand_in_current() == lost ? cudaErrorIllegalAddress : cudaSuccess; };
  };
  std::thread([&] {
    const detail::OnGpu entered(first);
    CHECK(detail::on_any_gpu(second, failing_on(-1)) == cudaSuccess);
    CHECK(detail::on_any_gpu(second, failing_on(0)) == cudaSuccess);
    CHECK(detail::on_any_gpu(second, failing_on(1)) == cudaSuccess);  // GPU 0's device is current
    CHECK(detail::on_any_gpu(first, failing_on(0)) == cudaErrorIllegalAddress);
    CHECK(stand_in_current() == 0);
  }).join();
}

TEST_CASE("a held context that ends in the child of a fork leaves CUDA alone") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  pid_t child = -1;
  long calls = 0;
  {
    const detail::HeldContext held;
    const detail::OnGpu entered(0);
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
