// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "use.hpp"

using namespace stand_in_test;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool under_tsan = true;
#elif defined(__has_feature)
constexpr bool under_tsan = __has_feature(thread_sanitizer);
#else
constexpr bool under_tsan = false;
#endif

/// What was said about the last calls; each of these tests does one thing wrong.
bool said(const char* part) {
  const std::string all = Fresh::said();
  INFO(all);
  const bool found = all.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("use of a stream or an event that does not exist is reported") {
  const Fresh fresh;
  const auto stream = make_stream();
  const auto event = make_event();
  ok(cudaStreamDestroy(stream));
  CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
  said("cudaStreamDestroy: no stream has the handle");
  CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
  said("cudaEventRecord: no stream");
  ok(cudaEventDestroy(event));
  CHECK(cudaStreamWaitEvent(nullptr, event, 0) == cudaErrorInvalidResourceHandle);
  said("cudaStreamWaitEvent: no event");
  CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
  said("cudaEventDestroy: no event");
}

TEST_CASE("use of an event or a launch of another device is reported") {
  const Fresh fresh;
  ok(cudaSetDevice(1));
  const auto stream = make_stream();
  ok(cudaSetDevice(0));
  const auto event = make_event();
  CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
  said("the event is of device 0, the stream of device 1");
  CHECK(cudaLaunchHostFunc(
            stream, [](void*) {}, nullptr) == cudaErrorInvalidResourceHandle);
  said("the stream is of device 1, but device 0 is current");
  ok(cudaEventRecord(event, nullptr));
  ok(cudaStreamWaitEvent(stream, event, 0));  // this is allowed
  ok(cudaStreamSynchronize(stream));
  ok(cudaEventDestroy(event));
  ok(cudaStreamDestroy(stream));
}

TEST_CASE("use of memory that does not exist is reported") {
  const Fresh fresh;
  auto* const device = device_ints(10);
  int host[10] = {};
  CHECK(cudaMemcpy(device, host, 44, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  said("44 bytes from");
  CHECK(cudaMemcpy(host, device, 40, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  said("is not in the memory of a device");
  CHECK(cudaMemset(host, 0, 40) == cudaErrorInvalidValue);
  said("is not in the memory of a device");
  CHECK(cudaFree(device + 1) == cudaErrorInvalidValue);
  said("is not the start of such memory");
  CHECK(cudaFreeAsync(device, nullptr) == cudaErrorInvalidValue);
  said("is not from a pool");
  ok(cudaFree(device));
  CHECK(cudaFree(device) == cudaErrorInvalidValue);
  said("freed already");
  CHECK(cudaMemcpy(device, host, 40, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  said("it was freed, or is something else");
}

TEST_CASE("use of another device's memory is reported") {
  const Fresh fresh;
  ok(cudaSetDevice(1));
  auto* const there = device_ints(4);
  ok(cudaSetDevice(0));
  auto* const here = device_ints(4);
  CHECK(cudaMemset(there, 0, 16) == cudaErrorInvalidValue);
  said("is of device 1, which device 0 has no access to");
  CHECK(cudaMemcpyPeer(here, 1, there, 0, 16) == cudaErrorInvalidValue);
  said("from device 0 to device 1, but the memory is of device 1 and device 0");
  ok(cudaFree(here));
  ok(cudaFree(there));
}

// ThreadSanitizer sees this, too, and ends the program.
TEST_CASE("use of memory that is not ordered with its allocation or release is reported" * doctest::skip(under_tsan)) {
  const Fresh fresh;
  const auto first = make_stream(), second = make_stream();
  const auto event = make_event();
  void* memory = nullptr;
  ok(cudaMallocAsync(&memory, 100, first));
  ok(cudaMemsetAsync(memory, 0, 100, second));
  said("was allocated in another stream");
  ok(cudaFreeAsync(memory, first));
  said("nothing orders that after its last use");

  ok(cudaMallocAsync(&memory, 100, first));
  ok(cudaEventRecord(event, first));
  ok(cudaStreamWaitEvent(second, event, 0));
  ok(cudaMemsetAsync(memory, 0, 100, second));
  ok(cudaEventRecord(event, second));
  ok(cudaStreamWaitEvent(first, event, 0));
  ok(cudaFreeAsync(memory, first));
  CHECK(Fresh::said() == "");

  ok(cudaMalloc(&memory, 100));
  ok(cudaMemsetAsync(memory, 0, 100, first));
  ok(cudaFree(memory));
  said("cudaFree: ");
  ok(cudaMalloc(&memory, 100));
  ok(cudaMemsetAsync(memory, 0, 100, first));
  ok(cudaStreamSynchronize(first));
  ok(cudaFree(memory));
  ok(cudaEventDestroy(event));
  ok(cudaStreamDestroy(first));
  ok(cudaStreamDestroy(second));
}

TEST_CASE("a host function in a stream that calls the runtime is reported") {
  const Fresh fresh;
  ok(cudaLaunchHostFunc(
      nullptr, [](void*) { CHECK(cudaFree(nullptr) == cudaErrorNotPermitted); }, nullptr));
  ok(cudaDeviceSynchronize());
  said("cudaFree: called in a function given to cudaLaunchHostFunc");
}
