// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <thread>

#include <fanout/cuda/runtime/memory_pool.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;
namespace detail = fanout::cuda::detail;

TEST_CASE("an unused pool reports zeros and is not made for a query") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState unused(0);
  const long calls = stand_in_calls(nullptr);
  detail::trim_pool(unused);
  detail::reset_peaks(unused);
  const detail::PoolUse use = detail::pool_use(unused);
  CHECK(use.allocated == 0);
  CHECK(use.most_allocated == 0);
  CHECK(use.reserved == 0);
  CHECK(use.most_reserved == 0);
  CHECK(stand_in_calls(nullptr) == calls);
}

TEST_CASE("a GPU without memory pools is refused by one error that says what to do") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  detail::GpuState virtual_gpu(0);  // that has not been used
  stand_in_set_memory_pools(0, 0);
  for (int attempt = 0; attempt < 2; ++attempt) {
    CHECK(fanout_test::message_of([&] { static_cast<void>(detail::pool_of(virtual_gpu)); }) ==
          "no memory pools on cuda:0 at the first allocation on it: expected a GPU and a driver with cudaMallocAsync, "
          "found cudaDevAttrMemoryPoolsSupported is 0, as on some virtual GPUs; use a whole GPU or a MIG instance, "
          "leave this one out by CUDA_VISIBLE_DEVICES, or use fanout::host_devices()");
  }
  CHECK(::cudaPeekAtLastError() == cudaSuccess);
  stand_in_set_memory_pools(0, 1);
  cudaMemPool_t pool = detail::pool_of(virtual_gpu);
  CHECK(::cudaMemPoolDestroy(pool) == cudaSuccess);
}

TEST_CASE("an allocation does not wait for a stream that still uses memory that it has released") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream busy(0), other(0);
  constexpr std::size_t bytes = std::size_t{3} << 20;
  fanout_test::Barrier gate;
  void* const first = detail::allocate_in(busy, bytes);
  fanout_test::call_in(busy, gate);
  detail::release_in(busy, first, bytes);
  void* const second = detail::allocate_in(other, bytes);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  cudaError_t status = cudaErrorNotReady;
  while (status == cudaErrorNotReady && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const cuda::DeviceGuard entered(0);
    status = ::cudaStreamQuery(other.get());
  }
  CHECK(status == cudaSuccess);
  gate.open();
  detail::release_in(other, second, bytes);
  busy.synchronize();
  other.synchronize();
}

TEST_CASE("an allocation that fails is tried again after cached memory is released") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  stand_in_forget_counts();
  stand_in_fail("cudaMallocFromPoolAsync", 1, 1, cudaErrorMemoryAllocation);
  void* data = detail::allocate_in(stream, 100);
  CHECK(data != nullptr);
  CHECK(stand_in_calls("cudaMallocFromPoolAsync") == 2);
  CHECK(stand_in_calls("cudaMemPoolTrimTo") == 1);
  CHECK(::cudaPeekAtLastError() == cudaSuccess);
  detail::release_in(stream, data, 100);
  stream.synchronize();
}

TEST_CASE("OutOfMemory tells the requested and the available bytes") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  const std::size_t total = detail::memory_info_of(detail::gpu_at(0)).total;
  try {
    detail::allocate_in(stream, 2 * total);
    FAIL("nothing was thrown");
  } catch (const fanout::OutOfMemory& error) {
    const std::string text = error.what();
    CHECK(text.find("out of memory of cuda:0: expected " + std::to_string(2 * total) + " bytes") == 0);
    CHECK(text.find(" bytes free of " + std::to_string(total)) != std::string::npos);
    CHECK(text.find("smaller batches") != std::string::npos);
  }
  CHECK(::cudaPeekAtLastError() == cudaSuccess);
  void* data = detail::allocate_in(stream, 100);  // the GPU is well
  detail::release_in(stream, data, 100);
  stream.synchronize();
}

TEST_CASE("a pool that cannot be made is an error, and is made the next time") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  for (const char* call : {"cudaMemPoolCreate", "cudaMemPoolSetAttribute"}) {
    detail::GpuState fresh(1);
    const int pools = stand_in_alive("pools");
    stand_in_fail(call, 1, 1, cudaErrorNotSupported);
    CHECK_THROWS_AS(detail::pool_of(fresh), cuda::CudaError);
    CHECK(stand_in_alive("pools") == pools);
    CHECK(detail::pool_of(fresh) != nullptr);
  }
}

TEST_CASE("memory is released without a context, on a lost GPU, and when the runtime is gone") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  stand_in_fresh_thread();
  void* data = detail::allocate_in(stream, 100);
  stand_in_forget_counts();
  stand_in_set_unloading(1);
  detail::release_in(stream, data, 100);
  stand_in_set_unloading(0);
  CHECK(stand_in_calls("cudaFreeAsync") == 0);
  detail::note(cudaErrorIllegalAddress, 0);
  detail::release_in(stream, data, 100);
  CHECK(stand_in_calls("cudaFreeAsync") == 0);
  detail::losses[0].code.store(cudaSuccess);
  detail::release_in(stream, data, 100);
  CHECK(stand_in_calls("cudaFreeAsync") == 1);
  CHECK(stand_in_depth() == 0);
  stream.synchronize();
}
