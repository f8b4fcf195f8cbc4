// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstring>

#include <fanout/cuda/runtime/page_locked.hpp>

#include "cuda/gpus.hpp"

namespace detail = fanout::cuda::detail;

namespace {

/// No GPU has been named, as in a new process, for as long as this lives; and then those that were.
class NoGpuNamed {
 public:
  NoGpuNamed() {
    for (int i = 0; i < detail::most_gpus; ++i) before_[i] = detail::gpus[i].gpu.exchange(nullptr);
  }
  NoGpuNamed(const NoGpuNamed&) = delete;
  NoGpuNamed& operator=(const NoGpuNamed&) = delete;
  ~NoGpuNamed() {
    for (int i = 0; i < detail::most_gpus; ++i) delete detail::gpus[i].gpu.exchange(before_[i]);
  }

 private:
  detail::GpuState* before_[detail::most_gpus] = {};
};

}  // namespace

TEST_CASE("work that names no GPU uses an existing context, or else that of the first GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const NoGpuNamed fresh;
  CHECK(detail::any_gpu().index() == 0);
  CHECK(detail::any_gpu().known_context() == nullptr);
  const int last = detail::count_gpus().count - 1;
  detail::gpu_at(last).context();
  CHECK(detail::any_gpu().index() == last);
  detail::losses[last].code.store(cudaErrorIllegalAddress);
  CHECK(detail::any_gpu().index() == 0);
  detail::losses[last].code.store(cudaSuccess);
}

TEST_CASE("allocating page-locked memory makes no context on unused GPUs") {
  if (!fanout_test::has_stand_in(2)) return;
  const fanout_test::Watched watched;
  detail::gpu_at(1).context();
  const int contexts = stand_in_contexts();
  detail::GpuState& gpu = detail::any_gpu();
  CHECK(gpu.known_context() != nullptr);
  const std::size_t before = stand_in_bytes_in_use(-1);
  void* data = detail::allocate_page_locked(1000, gpu);
  std::memset(data, 1, 1000);
  CHECK(stand_in_bytes_in_use(-1) >= before + 1000);
  detail::release_page_locked(data, gpu);
  CHECK(stand_in_bytes_in_use(-1) == before);
  CHECK(stand_in_contexts() == contexts);
}

TEST_CASE("page-locked memory that cannot be had is OutOfMemory") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  stand_in_fail("cudaHostAlloc", 1, 1, cudaErrorMemoryAllocation);
  const std::string message = fanout_test::message_of([] { detail::allocate_page_locked(12345, detail::any_gpu()); });
  CHECK(message.find("out of page-locked host memory: expected 12345 bytes") == 0);
  CHECK(::cudaPeekAtLastError() == cudaSuccess);
}
