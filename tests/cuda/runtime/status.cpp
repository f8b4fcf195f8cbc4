// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <type_traits>

#include <fanout/cuda/runtime/status.hpp>

#include "cuda/gpus.hpp"

namespace cuda = fanout::cuda;
using fanout_test::message_of;

namespace {
constexpr int nobodys = cuda::detail::most_gpus - 1;  // no machine has a GPU of that index
}

static_assert(std::is_base_of_v<fanout::DeviceError, cuda::CudaError>);

TEST_CASE("a status other than success is thrown with its name, the call and the GPU") {
  CHECK_NOTHROW(cuda::check(cudaSuccess, "cudaSomething"));
  try {
    cuda::check(cudaErrorInvalidValue, "cudaSomething", 3);
    FAIL("nothing was thrown");
  } catch (const cuda::CudaError& error) {
    CHECK(error.code() == cudaErrorInvalidValue);
    CHECK(std::string(error.name()) == "cudaErrorInvalidValue");
    CHECK(std::string(error.what()) ==
          "CUDA error on cuda:3: invalid argument (cudaErrorInvalidValue) at cudaSomething");
  }
}

TEST_CASE("an error that was thrown is not returned by a later call") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  CHECK_THROWS_AS(cuda::check(::cudaSetDevice(cuda::detail::count_gpus().count), "cudaSetDevice"), cuda::CudaError);
  CHECK(::cudaGetLastError() == cudaSuccess);
}

TEST_CASE("memory that could not be had is OutOfMemory") {
  CHECK_THROWS_AS(cuda::check(cudaErrorMemoryAllocation, "cudaSomething", 1), fanout::OutOfMemory);
  CHECK(message_of([] {
          cuda::check(cudaErrorMemoryAllocation, "cudaSomething", 1);
        }).starts_with("out of memory of cuda:1 at cudaSomething"));
}

TEST_CASE("a GPU with a sticky error is lost from then on") {
  CHECK_NOTHROW(cuda::detail::refuse_lost(nobodys));
  try {
    cuda::check(cudaErrorIllegalAddress, "cudaStreamSynchronize", nobodys);
    FAIL("nothing was thrown");
  } catch (const cuda::DeviceLost& lost) {
    CHECK(lost.index() == nobodys);
    CHECK(lost.code() == cudaErrorIllegalAddress);
    CHECK(std::string(lost.what()) ==
          "device cuda:127 is lost: an illegal memory access was encountered (cudaErrorIllegalAddress) at "
          "cudaStreamSynchronize; the process must be restarted to use it again");
  }
  CHECK_THROWS_AS(cuda::detail::refuse_lost(nobodys), cuda::DeviceLost);
  cuda::detail::note(cudaErrorAssert, nobodys);  // the first loss is the one that is reported
  CHECK(cuda::detail::losses[nobodys].code.load() == cudaErrorIllegalAddress);
  cuda::detail::losses[nobodys].code.store(cudaSuccess);
}

TEST_CASE("a GPU whose context was destroyed was reset, as its error says") {
  CHECK(message_of([] { cuda::check(cudaErrorContextIsDestroyed, "cuCtxPushCurrent", nobodys); }) ==
        "device cuda:127 is lost: context is destroyed (cudaErrorContextIsDestroyed) at cuCtxPushCurrent; "
        "cudaDeviceReset() destroys all that fanout has on a GPU: call it only when the process ends");
  cuda::detail::losses[nobodys].code.store(cudaSuccess);
}

TEST_CASE("a destructor notes a sticky error and ignores the end of the runtime") {
  cuda::detail::note(cudaErrorInvalidValue, nobodys);
  cuda::detail::note(cudaErrorCudartUnloading, nobodys);
  CHECK_NOTHROW(cuda::detail::refuse_lost(nobodys));
  cuda::detail::note(cudaErrorLaunchFailure, nobodys);
  CHECK_THROWS_AS(cuda::detail::refuse_lost(nobodys), cuda::DeviceLost);
  cuda::detail::losses[nobodys].code.store(cudaSuccess);
}

#if CUDART_VERSION >= 12080
TEST_CASE("errors that older toolkits do not name have the numbers of this one") {
  static_assert(cuda::detail::error_contained == cudaErrorContained);
  static_assert(cuda::detail::error_tensor_memory_leak == cudaErrorTensorMemoryLeak);
}
#endif

TEST_CASE("sticky errors are told from other statuses") {
  for (const cudaError_t status :
       {cudaErrorECCUncorrectable, cudaErrorIllegalAddress, cudaErrorLaunchTimeout, cudaErrorAssert,
        cudaErrorHardwareStackError, cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
        cudaErrorInvalidAddressSpace, cudaErrorInvalidPc, cudaErrorLaunchFailure, cudaErrorNvlinkUncorrectable,
        cudaErrorContextIsDestroyed, cudaErrorMpsClientTerminated, cudaErrorExternalDevice,
        // cudaErrorContained and cudaErrorTensorMemoryLeak, which older headers lack
        static_cast<cudaError_t>(226), static_cast<cudaError_t>(721)}) {
    CAPTURE(static_cast<int>(status));
    CHECK(cuda::detail::is_sticky(status));
  }
  for (const cudaError_t status : {cudaSuccess, cudaErrorInvalidValue, cudaErrorMemoryAllocation, cudaErrorNotReady,
                                   cudaErrorInvalidDevice, cudaErrorCudartUnloading, cudaErrorNoDevice}) {
    CHECK_FALSE(cuda::detail::is_sticky(status));
  }
}
