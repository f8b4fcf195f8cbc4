// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of the stand-in share.
#pragma once

#include <doctest/doctest.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "stand_in.h"

namespace stand_in_test {

/// Starts as a thread that has never used CUDA, and ends with nothing said and nothing left.
struct Fresh {
  Fresh() {
    stand_in_fresh_thread();
    REQUIRE(said() == "");
    for (int i = 0; i < kinds; ++i) before[i] = stand_in_alive(names[i]);
  }
  ~Fresh() {
    CHECK(said() == "");
    CHECK(stand_in_no_failures() == 0);
    for (int i = 0; i < kinds; ++i) {
      INFO(names[i]);
      CHECK(stand_in_alive(names[i]) == before[i]);
    }
    stand_in_fresh_thread();
    (void)cudaGetLastError();
  }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;

  static std::string said() { return stand_in_misuse(); }

 private:
  static constexpr int kinds = 5;
  static constexpr const char* names[kinds] = {"streams", "events", "pools", "device memory", "pinned memory"};
  int before[kinds] = {};
};

inline void ok(cudaError_t status) { CHECK(std::string(cudaGetErrorName(status)) == "cudaSuccess"); }

inline cudaStream_t make_stream(unsigned flags = cudaStreamDefault) {
  cudaStream_t stream = nullptr;
  ok(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

inline cudaEvent_t make_event(unsigned flags = cudaEventDisableTiming) {
  cudaEvent_t event = nullptr;
  ok(cudaEventCreateWithFlags(&event, flags));
  return event;
}

inline int* device_ints(std::size_t count) {
  void* memory = nullptr;
  ok(cudaMalloc(&memory, count * sizeof(int)));
  return static_cast<int*>(memory);
}

inline int* pinned_ints(std::size_t count) {
  void* memory = nullptr;
  ok(cudaMallocHost(&memory, count * sizeof(int)));
  return static_cast<int*>(memory);
}

/// A place in a stream that lets nothing pass until it is opened.
class Barrier {
 public:
  explicit Barrier(cudaStream_t stream) {
    ok(cudaLaunchHostFunc(
        stream,
        [](void* self) {
          while (!static_cast<Barrier*>(self)->open_.load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
        },
        this));
  }
  void open() { open_.store(true); }

 private:
  std::atomic<bool> open_{false};
};

template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  ok(cudaGetDriverEntryPointByVersion(name, &found, CUDART_VERSION, cudaEnableDefault, &status));
  REQUIRE(status == cudaDriverEntryPointSuccess);
  return reinterpret_cast<Function>(found);
}

}  // namespace stand_in_test
