// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>

#include <fanout/cuda/runtime/stream.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;

static_assert(!std::is_copy_constructible_v<cuda::Stream> && !std::is_copy_assignable_v<cuda::Stream>);
static_assert(std::is_trivially_copyable_v<cuda::StreamRef>);

TEST_CASE("a stream does its work in order, while the thread goes on") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  CHECK(stream.get() != nullptr);
  CHECK(stream.device() == 0);
  CHECK(stream.is_idle());
  fanout_test::Barrier barrier;
  std::string order;
  auto first = [&order] { order += 'a'; };
  auto second = [&order] { order += 'b'; };
  fanout_test::call_in(stream, barrier);
  fanout_test::call_in(stream, first);
  fanout_test::call_in(stream, second);
  CHECK_FALSE(stream.is_idle());
  CHECK(::cudaPeekAtLastError() == cudaSuccess);
  barrier.open();
  stream.synchronize();
  CHECK(order == "ab");
  CHECK(stream.is_idle());
}

TEST_CASE("rule 166: a stream waits for another, also of another GPU") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream first(0);
  const cuda::Stream second(cuda::detail::count_gpus().count - 1);
  fanout_test::Barrier barrier;
  int value = 0;
  auto write = [&value] { value = 1; };
  int seen = -1;
  auto read = [&] { seen = value; };
  fanout_test::call_in(first, barrier);
  fanout_test::call_in(first, write);
  second.wait(first);
  fanout_test::call_in(second, read);
  barrier.open();
  second.synchronize();
  CHECK(seen == 1);
  CHECK_NOTHROW(second.wait(second));
  first.synchronize();
}

TEST_CASE("rule 166: streams of two priorities") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream normal(0);
  const cuda::Stream high(0, -1);
  CHECK(normal.get() != high.get());
}

TEST_CASE("streams bridge to native handles both ways") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  cudaStream_t handle = nullptr;
  {
    const cuda::DeviceGuard entered(0);
    REQUIRE(::cudaStreamCreate(&handle) == cudaSuccess);
  }
  const cuda::StreamRef borrowed(handle, 0);
  CHECK(borrowed.get() == handle);
  CHECK(borrowed == cuda::StreamRef(handle, 0));
  CHECK(borrowed != cuda::StreamRef(nullptr, 0));
  borrowed.synchronize();
  cuda::Stream owner = cuda::Stream::adopt(handle, 0);
  CHECK(cuda::StreamRef(owner) == borrowed);
  cuda::Stream moved(std::move(owner));
  CHECK(owner.get() == nullptr);
  CHECK(moved.get() == handle);
  owner = std::move(moved);
  CHECK(owner.release() == handle);
  CHECK(owner.get() == nullptr);
  const cuda::Stream last = cuda::Stream::adopt(handle, 0);
  CHECK(last.is_idle());
}

TEST_CASE("rule 168: the GPU's default stream can be borrowed, and its results are ready in other streams") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::StreamRef byDefault(nullptr, 0);
  const cuda::Stream stream(0);
  fanout_test::Barrier barrier;
  int value = 0;
  auto write = [&value] { value = 1; };
  int seen = -1;
  auto read = [&] { seen = value; };
  fanout_test::call_in(byDefault, barrier);
  fanout_test::call_in(byDefault, write);
  fanout_test::call_in(stream, read);
  barrier.open();
  stream.synchronize();
  CHECK(seen == 1);
}

TEST_CASE("streams leave the current device alone, and no native stream behind") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  stand_in_fresh_thread();
  const int before = stand_in_alive("streams");
  {
    const cuda::Stream stream(1);
    CHECK(stand_in_alive("streams") == before + 1);
    stream.synchronize();
    CHECK(stream.is_idle());
    cuda::Event event;
    stream.record(event);
    stream.wait(event);
  }
  CHECK(stand_in_alive("streams") == before);
  CHECK(stand_in_depth() == 0);
}

TEST_CASE("a stream that cannot be made is an error, and so is failed work") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  CHECK_THROWS_AS(cuda::Stream(-1), fanout::InvalidDeviceId);
  CHECK_THROWS_AS(cuda::Stream(cuda::detail::count_gpus().count), fanout::InvalidDeviceId);
  stand_in_fail("cudaStreamCreateWithPriority", 1, 1, cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(cuda::Stream(0), fanout::OutOfMemory);
  const cuda::Stream stream(0);
  auto fail = [] { stand_in_poison(0, cudaErrorIllegalAddress); };
  fanout_test::call_in(stream, fail);
  CHECK_THROWS_AS(stream.synchronize(), cuda::DeviceLost);
  CHECK_THROWS_AS(static_cast<void>(stream.is_idle()), cuda::DeviceLost);
}

TEST_CASE("a stream waits for its work even if the first attempt fails") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  std::atomic<bool> done{false};
  auto work = [&done] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    done = true;
  };
  fanout_test::call_in(stream, work);
  stand_in_fail("cudaStreamSynchronize", 1, 1, cudaErrorUnknown);
  CHECK_THROWS_AS(stream.synchronize(), cuda::CudaError);
  CHECK(done);
}

TEST_CASE("a stream may be destroyed after the runtime") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  {
    const cuda::Stream stream(0);
    stand_in_set_unloading(1);
  }
  stand_in_set_unloading(0);
  CHECK(cuda::detail::gpu_at(0).usable());
}
