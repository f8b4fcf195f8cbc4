// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "use.hpp"

using namespace stand_in_test;

namespace {

void append(cudaStream_t stream, int* digits, int digit) {
  struct Work {
    int* digits;
    int digit;
  };
  ok(cudaLaunchHostFunc(
      stream,
      [](void* data) {
        const auto* const work = static_cast<Work*>(data);
        *work->digits = *work->digits * 10 + work->digit;
        delete work;
      },
      new Work{digits, digit}));
}

}  // namespace

TEST_CASE("a stream does one thing after the other, and the host does not wait") {
  const Fresh fresh;
  const auto stream = make_stream();
  int digits = 0;
  Barrier barrier(stream);
  for (int digit = 1; digit <= 5; ++digit) append(stream, &digits, digit);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaErrorNotReady);
  barrier.open();
  ok(cudaStreamSynchronize(stream));
  CHECK(digits == 12345);
  ok(cudaStreamQuery(stream));
  ok(cudaStreamDestroy(stream));
}

TEST_CASE("a stream waits for an event as it was recorded when the wait was asked for") {
  const Fresh fresh;
  const auto first = make_stream(cudaStreamNonBlocking), second = make_stream(cudaStreamNonBlocking);
  const auto event = make_event();
  int digits = 0;
  Barrier barrier(first);
  append(first, &digits, 1);
  ok(cudaEventRecord(event, first));
  ok(cudaStreamWaitEvent(second, event, 0));
  append(second, &digits, 2);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  CHECK(cudaStreamQuery(second) == cudaErrorNotReady);
  Barrier later(first);
  ok(cudaEventRecord(event, first));  // does not move the wait
  barrier.open();
  ok(cudaStreamSynchronize(second));
  CHECK(digits == 12);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  later.open();
  ok(cudaEventSynchronize(event));
  (void)cudaGetLastError();
  ok(cudaEventDestroy(event));
  ok(cudaStreamDestroy(first));
  ok(cudaStreamDestroy(second));
}

TEST_CASE("an event that was never recorded counts as complete") {
  const Fresh fresh;
  const auto event = make_event();
  ok(cudaEventQuery(event));
  ok(cudaEventSynchronize(event));
  ok(cudaStreamWaitEvent(nullptr, event, 0));
  ok(cudaEventDestroy(event));
}

TEST_CASE("the time between two events is measured") {
  const Fresh fresh;
  const auto start = make_event(cudaEventDefault), end = make_event(cudaEventDefault), without = make_event();
  ok(cudaEventRecord(start, nullptr));
  ok(cudaLaunchHostFunc(
      nullptr, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }, nullptr));
  ok(cudaEventRecord(end, nullptr));
  ok(cudaEventRecord(without, nullptr));
  ok(cudaEventSynchronize(end));
  float milliseconds = 0;
  ok(cudaEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 5);
  CHECK(cudaEventElapsedTime(&milliseconds, start, without) == cudaErrorInvalidResourceHandle);
  for (const auto event : {start, end, without}) ok(cudaEventDestroy(event));
}

TEST_CASE("the default stream waits for the others, and they for it") {
  const Fresh fresh;
  const auto first = make_stream(), second = make_stream();
  int digits = 0;
  Barrier barrier(first);
  append(first, &digits, 1);
  append(nullptr, &digits, 2);
  append(second, &digits, 3);
  append(nullptr, &digits, 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // enough for who does not wait
  barrier.open();
  ok(cudaStreamSynchronize(nullptr));
  CHECK(digits == 1234);
  ok(cudaStreamDestroy(first));
  ok(cudaStreamDestroy(second));
}

TEST_CASE("a stream that does not block is not ordered with the default stream") {
  const Fresh fresh;
  const auto apart = make_stream(cudaStreamNonBlocking);
  int left = 0, right = 0;
  {
    Barrier barrier(apart);
    append(nullptr, &left, 1);
    ok(cudaStreamSynchronize(nullptr));
    CHECK(left == 1);
    barrier.open();
    ok(cudaStreamSynchronize(apart));
  }
  Barrier barrier(nullptr);
  append(apart, &right, 2);
  ok(cudaStreamSynchronize(apart));
  CHECK(right == 2);
  barrier.open();
  ok(cudaDeviceSynchronize());
  ok(cudaStreamDestroy(apart));
}

TEST_CASE("the default streams of two devices have nothing to do with each other") {
  const Fresh fresh;
  ok(cudaSetDevice(0));
  Barrier barrier(nullptr);
  ok(cudaSetDevice(1));
  ok(cudaDeviceSynchronize());
  barrier.open();
  ok(cudaSetDevice(0));
  ok(cudaDeviceSynchronize());
}

TEST_CASE("work in a stream runs even if the stream is destroyed") {
  const Fresh fresh;
  for (const unsigned flags : {unsigned{cudaStreamDefault}, unsigned{cudaStreamNonBlocking}}) {
    const auto stream = make_stream(flags);
    int digits = 0;
    Barrier barrier(stream);
    append(stream, &digits, 7);
    ok(cudaStreamDestroy(stream));
    barrier.open();
    ok(cudaDeviceSynchronize());
    CHECK(digits == 7);
  }
}

TEST_CASE("a stream knows its device, priority and flags") {
  const Fresh fresh;
  ok(cudaSetDevice(1));
  cudaStream_t stream = nullptr;
  ok(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -2));
  ok(cudaSetDevice(0));
  int device = -1, priority = 0;
  unsigned flags = 0;
  ok(cudaStreamGetDevice(stream, &device));
  ok(cudaStreamGetFlags(stream, &flags));
  ok(cudaStreamGetPriority(stream, &priority));
  CHECK(device == 1);
  CHECK(flags == cudaStreamNonBlocking);
  CHECK(priority == -2);
  ok(cudaStreamDestroy(stream));
}
