// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two uses of the same memory, ordered as CUDA wants it or not (FANOUT_STAND_IN_ORDER=racing): ThreadSanitizer must
// tell the two apart.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "stand_in.h"

#ifdef FANOUT_TEST_NCCL
#include <nccl.h>
#endif

namespace {

bool ordered = true;

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::puts(cudaGetErrorName(status));
  std::_Exit(1);
}

constexpr std::size_t count = 300, bytes = count * sizeof(int);

/// In the order of the stream, add one to each number.
void add_one(cudaStream_t stream, int* data) {
  const auto kernel = [](void* numbers) {
    for (std::size_t i = 0; i < count; ++i) ++static_cast<int*>(numbers)[i];
  };
  check(cudaLaunchHostFunc(stream, kernel, data));
}

cudaStream_t stream_on(int device, unsigned flags = cudaStreamDefault) {
  check(cudaSetDevice(device));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

void let_wait(cudaStream_t later, cudaStream_t earlier) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  check(cudaEventRecord(event, earlier));
  if (ordered) check(cudaStreamWaitEvent(later, event, 0));
  check(cudaEventDestroy(event));
}

int* pinned() {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes));
  return static_cast<int*>(memory);
}

int* on_device() {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes));
  return static_cast<int*>(memory);
}

void host_reads_early() {
  auto* const host = pinned();
  const auto stream = stream_on(0);
  check(cudaMemcpyAsync(host, on_device(), bytes, cudaMemcpyDeviceToHost, stream));
  if (ordered) check(cudaStreamSynchronize(stream));
  std::printf("%d\n", host[0]);
}

void host_writes_early() {
  auto* const host = pinned();
  const auto stream = stream_on(0);
  host[0] = 1;  // before the copy is asked for, and so before it
  check(cudaMemcpyAsync(on_device(), host, bytes, cudaMemcpyHostToDevice, stream));
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event));
  check(cudaEventRecord(event, stream));
  if (ordered) check(cudaEventSynchronize(event));
  host[0] = 2;
}

void two_streams() {
  const auto first = stream_on(0), second = stream_on(0);
  auto* const data = on_device();
  check(cudaMemsetAsync(data, 1, bytes, first));
  add_one(first, data);  // in the same stream: ordered
  let_wait(second, first);
  add_one(second, data);
}

void two_devices() {
  const auto first = stream_on(0);
  auto* const from = on_device();
  add_one(first, from);
  const auto second = stream_on(1);
  auto* const to = on_device();
  check(cudaSetDevice(0));
  let_wait(second, first);
  check(cudaSetDevice(1));
  check(cudaMemcpyPeerAsync(to, 1, from, 0, bytes, second));
}

void free_in_other_stream() {
  const auto first = stream_on(0), second = stream_on(0);
  void* memory = nullptr;
  check(cudaMallocAsync(&memory, bytes, first));
  add_one(first, static_cast<int*>(memory));
  let_wait(second, first);
  check(cudaFreeAsync(memory, second));
}

void nonblocking_and_default() {
  const auto stream = stream_on(0, ordered ? cudaStreamDefault : cudaStreamNonBlocking);
  auto* const data = on_device();
  check(cudaMemsetAsync(data, 1, bytes, nullptr));
  add_one(stream, data);
  add_one(nullptr, data);
}

#ifdef FANOUT_TEST_NCCL
/// What one rank sends is ready when its own stream gets there, not when the other's does.
void collective() {
  const auto before = stream_on(0);
  auto* const first = on_device();
  const auto first_stream = stream_on(0), second_stream = stream_on(1);
  auto* const second = on_device();
  ncclComm_t comms[2] = {};
  check(ncclCommInitAll(comms, 2, nullptr) == ncclSuccess ? cudaSuccess : cudaErrorUnknown);
  check(cudaSetDevice(0));
  add_one(before, first);
  let_wait(first_stream, before);
  (void)ncclGroupStart();
  (void)ncclAllReduce(first, first, count, ncclInt32, ncclSum, comms[0], first_stream);
  (void)ncclAllReduce(second, second, count, ncclInt32, ncclSum, comms[1], second_stream);
  check(ncclGroupEnd() == ncclSuccess ? cudaSuccess : cudaErrorUnknown);
  add_one(first_stream, first);  // after the collective, in the same stream: ordered
  for (auto* const comm : comms) (void)ncclCommDestroy(comm);
}
#endif

}  // namespace

int main() {
  const auto value = [](const char* name) {
    return std::string(std::getenv(name) == nullptr ? "" : std::getenv(name));
  };
  ordered = value("FANOUT_STAND_IN_ORDER") != "racing";
  for (const char* kind : {"streams", "events", "device memory", "pinned memory"}) stand_in_allow_at_exit(kind, -1);
  const std::string what = value("FANOUT_STAND_IN_RACE");
  if (what == "host_reads_early") host_reads_early();
  if (what == "host_writes_early") host_writes_early();
  if (what == "two_streams") two_streams();
  if (what == "two_devices") two_devices();
  if (what == "free_in_other_stream") free_in_other_stream();
  if (what == "nonblocking_and_default") nonblocking_and_default();
#ifdef FANOUT_TEST_NCCL
  if (what == "collective") collective();
#endif
  for (int device = 0; device < 2; ++device) {
    check(cudaSetDevice(device));
    check(cudaDeviceSynchronize());
  }
  const std::string said = stand_in_misuse();
  std::printf("%s", said.c_str());
  return ordered && !said.empty() ? 1 : 0;
}
