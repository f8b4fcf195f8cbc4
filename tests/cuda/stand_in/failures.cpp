// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "use.hpp"

using namespace stand_in_test;

TEST_CASE("the call that is to fail fails, once, and does nothing") {
  const Fresh fresh;
  stand_in_fail("cudaMalloc", 2, 1, cudaErrorMemoryAllocation);
  auto* const memory = device_ints(1);
  void* none = nullptr;
  CHECK(cudaMalloc(&none, 4) == cudaErrorMemoryAllocation);
  CHECK(none == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  ok(cudaFree(memory));
}

TEST_CASE("any call can fail, several in a row can, and a failing release still releases") {
  const Fresh fresh;
  auto* const memory = device_ints(1);
  stand_in_fail(nullptr, 1, 2, cudaErrorUnknown);
  CHECK(cudaFree(memory) == cudaErrorUnknown);
  CHECK(cudaDeviceSynchronize() == cudaErrorUnknown);
  ok(cudaDeviceSynchronize());
  stand_in_fail("cudaMalloc", 100, 1, cudaErrorUnknown);
  CHECK(stand_in_no_failures() == 1);
}

TEST_CASE("a sticky error stays, and only its device has it") {
  const Fresh fresh;
  ok(cudaSetDevice(1));
  const auto stream = make_stream();
  int ran = 0;
  ok(cudaLaunchHostFunc(
      stream, [](void*) { stand_in_poison(1, cudaErrorIllegalAddress); }, nullptr));
  // The stream may have run the first before the second is given.
  const cudaError_t given = cudaLaunchHostFunc(
      stream, [](void* done) { *static_cast<int*>(done) = 1; }, &ran);
  CHECK((given == cudaSuccess || given == cudaErrorIllegalAddress));
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  CHECK(ran == 0);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 4) == cudaErrorIllegalAddress);
  CHECK(cudaStreamDestroy(stream) == cudaErrorIllegalAddress);  // gone all the same
  ok(cudaSetDevice(0));
  ok(cudaDeviceSynchronize());
  stand_in_poison(1, 0);
  (void)cudaGetLastError();
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("a device is lost at the call that is wanted") {
  const Fresh fresh;
  ok(cudaSetDevice(1));
  stand_in_poison_at(2, 1, cudaErrorIllegalAddress);
  ok(cudaDeviceSynchronize());
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(stand_in_no_failures() == 0);
  ok(cudaSetDevice(0));
  ok(cudaDeviceSynchronize());
  stand_in_poison(1, 0);
  (void)cudaGetLastError();
}

TEST_CASE("when the program ends, every call says so") {
  const Fresh fresh;
  stand_in_set_unloading(1);
  CHECK(cudaFree(nullptr) == cudaErrorCudartUnloading);
  int count = 7;
  CHECK(cudaGetDeviceCount(&count) == cudaErrorCudartUnloading);
  CHECK(count == 7);
  stand_in_set_unloading(0);
}

TEST_CASE("there may be no device, or no driver") {
  const Fresh fresh;
  int count = 7;
  stand_in_set_devices(0);
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  CHECK(count == 0);
  CHECK(cudaFree(nullptr) == cudaErrorNoDevice);
  count = 7;
  stand_in_set_devices(-1);
  CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
  CHECK(count == 7);
  CHECK(cudaGetLastError() == cudaErrorInsufficientDriver);
  CHECK(cudaGetLastError() == cudaErrorInsufficientDriver);
  CHECK(cudaDriverGetVersion(&count) == cudaSuccess);
  CHECK(count == 0);
  stand_in_set_devices(3);
  ok(cudaGetDeviceCount(&count));
  CHECK(count == 3);
}

TEST_CASE("after fork the child has no CUDA") {
  const Fresh fresh;
  ok(cudaFree(nullptr));
  const pid_t child = fork();
  if (child == 0) {
    int device = -1;
    _exit(cudaGetDevice(&device) == cudaErrorInitializationError && device == -1 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a fork while another thread makes calls leaves the child books that are unlocked") {
  const Fresh fresh;
  std::atomic<bool> over{false};
  std::thread other([&over] {
    while (!over) stand_in_calls(nullptr);
  });
  int ended = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      stand_in_calls(nullptr);
      _exit(0);
    }
    int status = -1;
    if (waitpid(child, &status, 0) == child && status == 0) ++ended;
  }
  over = true;
  other.join();
  CHECK(ended == 20);
}

TEST_CASE("the calls that were made are known") {
  const Fresh fresh;
  stand_in_forget_counts();
  ok(cudaFree(nullptr));
  ok(cudaFree(nullptr));
  ok(cudaDeviceSynchronize());
  CHECK(stand_in_calls("cudaFree") == 2);
  CHECK(stand_in_calls(nullptr) == 3);
  CHECK(std::string(stand_in_functions()) == "cudaDeviceSynchronize\ncudaFree\n");
}
