// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cuda.h>

#include <fanout/cuda/runtime/driver.hpp>

#include "cuda/gpus.hpp"

namespace detail = fanout::cuda::detail;

TEST_CASE("the driver's functions are found through the runtime, once") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const detail::Driver& driver = detail::driver();
  CHECK(&detail::driver() == &driver);
  CUdevice device = -1;
  CHECK(driver.get_device(&device, 0) == CUDA_SUCCESS);
  CUcontext current = nullptr;
  CHECK(driver.current_context(&current) == CUDA_SUCCESS);
}

TEST_CASE("a function that the driver does not have is named") {
  if (!fanout_test::has_gpus(1)) return;
  CUresult (*function)() = nullptr;
  const std::string message = fanout_test::message_of([&] { detail::find_in_driver("cuNobodyHasThis", function); });
  CHECK(message.find("cuNobodyHasThis") != std::string::npos);
  CHECK((function == nullptr));
}

TEST_CASE("a context that cannot be pushed since it is invalid was destroyed") {
  CHECK(detail::status_of_push(CUDA_ERROR_INVALID_CONTEXT) == cudaErrorContextIsDestroyed);
  CHECK(detail::status_of_push(CUDA_ERROR_CONTEXT_IS_DESTROYED) == cudaErrorContextIsDestroyed);
  CHECK(detail::status_of_push(CUDA_ERROR_OUT_OF_MEMORY) == cudaErrorMemoryAllocation);
  CHECK(detail::status_of_push(CUDA_SUCCESS) == cudaSuccess);
}
