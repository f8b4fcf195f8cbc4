// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "use.hpp"

using namespace stand_in_test;

// Contexts are never destroyed, so what comes into being is told by a device that no other test uses.
TEST_CASE("queries about devices make no context, and the first use makes that of device 0") {
  const Fresh fresh;
  int device = -1;
  ok(cudaGetDevice(&device));
  CHECK(device == 0);
  cudaDeviceProp properties{};
  ok(cudaGetDeviceProperties(&properties, 2));
  CHECK(std::string(properties.name) == "Stand-in 2");
  int able = 0;
  ok(cudaDeviceCanAccessPeer(&able, 0, 2));
  CHECK(able == 1);
  CHECK(stand_in_depth() == 0);
  CHECK(stand_in_current() == -1);
  ok(cudaFree(nullptr));
  CHECK(stand_in_depth() == 1);
  CHECK(stand_in_current() == 0);
  CHECK(stand_in_has_context(2) == 0);
}

TEST_CASE("a device that is reset has nothing left, and its context is destroyed until the runtime uses it again") {
  const Fresh fresh;
  const auto retain = driver_function<unsigned (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain");
  const auto release = driver_function<unsigned (*)(CUdevice)>("cuDevicePrimaryCtxRelease");
  const auto push = driver_function<unsigned (*)(CUcontext)>("cuCtxPushCurrent");
  const auto pop = driver_function<unsigned (*)(CUcontext*)>("cuCtxPopCurrent");
  const int streams = stand_in_alive("streams"), events = stand_in_alive("events");
  const int memory = stand_in_alive("device memory");
  CUcontext context = nullptr;
  CHECK(retain(&context, 1) == CUDA_SUCCESS);
  ok(cudaSetDevice(1));
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void* data = nullptr;
  ok(cudaStreamCreate(&stream));
  ok(cudaEventCreate(&event));
  ok(cudaMallocAsync(&data, 1024, stream));
  ok(cudaMemsetAsync(data, 1, 1024, stream));
  ok(cudaDeviceReset());
  CHECK(stand_in_alive("streams") == streams);
  CHECK(stand_in_alive("events") == events);
  CHECK(stand_in_alive("device memory") == memory);
  CHECK(push(context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  int device = -1;
  ok(cudaGetDevice(&device));
  CHECK(device == 1);
  ok(cudaFree(nullptr));
  CHECK(push(context) == CUDA_SUCCESS);
  CHECK(pop(nullptr) == CUDA_SUCCESS);
  CHECK(release(1) == CUDA_SUCCESS);
}

TEST_CASE("a context that is pushed is current until it is popped, and there was none before") {
  const Fresh fresh;
  const auto retain = driver_function<unsigned (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain");
  const auto release = driver_function<unsigned (*)(CUdevice)>("cuDevicePrimaryCtxRelease");
  const auto push = driver_function<unsigned (*)(CUcontext)>("cuCtxPushCurrent");
  const auto pop = driver_function<unsigned (*)(CUcontext*)>("cuCtxPopCurrent");
  const auto current = driver_function<unsigned (*)(CUcontext*)>("cuCtxGetCurrent");
  CUcontext made = nullptr, other = nullptr;
  CHECK(retain(&made, 1) == CUDA_SUCCESS);
  CHECK(stand_in_has_context(1) == 1);
  CHECK(current(&other) == CUDA_SUCCESS);
  CHECK(other == nullptr);
  CHECK(push(made) == CUDA_SUCCESS);
  int device = -1;
  ok(cudaGetDevice(&device));
  CHECK(device == 1);
  const auto stream = make_stream();
  ok(cudaStreamGetDevice(stream, &device));
  CHECK(device == 1);
  CHECK(push(made) == CUDA_SUCCESS);
  CHECK(stand_in_depth() == 2);
  ok(cudaSetDevice(0));  // takes the place of the one on top
  CHECK(stand_in_depth() == 2);
  CHECK(stand_in_current() == 0);
  CHECK(pop(&other) == CUDA_SUCCESS);
  CHECK(other != made);
  ok(cudaStreamDestroy(stream));
  CHECK(pop(&other) == CUDA_SUCCESS);
  CHECK(other == made);
  CHECK(stand_in_current() == -1);
  CHECK(pop(&other) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(Fresh::said() == "cuCtxPopCurrent: the thread has no current context\n");
  CHECK(release(1) == CUDA_SUCCESS);
}

TEST_CASE("the current device is each thread's own") {
  const Fresh fresh;
  ok(cudaSetDevice(1));
  int device = -1;
  std::thread([&] { ok(cudaGetDevice(&device)); }).join();
  CHECK(device == 0);
  ok(cudaGetDevice(&device));
  CHECK(device == 1);
}

TEST_CASE("a device that does not exist is refused") {
  const Fresh fresh;
  CHECK(cudaSetDevice(3) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  cudaDeviceProp properties{};
  CHECK(cudaGetDeviceProperties(&properties, 3) == cudaErrorInvalidDevice);
}
