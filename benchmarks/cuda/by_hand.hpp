// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#include "benchmarks/cuda/kernels.hpp"

namespace benchmarks {

/// What one would write without fanout, with everything made before: on each of some GPUs two streams, events and
/// memory for two batches, and page-locked memory for one.
class ByHand {
 public:
  struct Gpu {
    cudaStream_t compute = nullptr;
    cudaStream_t copies = nullptr;
    cudaEvent_t done = nullptr;
    cudaEvent_t copied = nullptr;
    cudaEvent_t computed[2] = {};
    void* data[2] = {};
    void* pinned = nullptr;
  };

  ByHand(int gpus, std::size_t bytes) : bytes_(bytes), gpus_(static_cast<std::size_t>(gpus)) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    each([&](Gpu& gpu) {
      check(cudaStreamCreate(&gpu.compute), "cudaStreamCreate");
      check(cudaStreamCreate(&gpu.copies), "cudaStreamCreate");
      for (cudaEvent_t* event : {&gpu.done, &gpu.copied, &gpu.computed[0], &gpu.computed[1]}) {
        check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
      }
      for (void*& data : gpu.data) check(cudaMalloc(&data, bytes), "cudaMalloc");
      check(cudaMallocHost(&gpu.pinned, bytes), "cudaMallocHost");
    });
  }
  ByHand(const ByHand&) = delete;
  ByHand& operator=(const ByHand&) = delete;
  ~ByHand() {
    each([](Gpu& gpu) {
      static_cast<void>(cudaStreamDestroy(gpu.compute));
      static_cast<void>(cudaStreamDestroy(gpu.copies));
      for (cudaEvent_t event : {gpu.done, gpu.copied, gpu.computed[0], gpu.computed[1]}) {
        static_cast<void>(cudaEventDestroy(event));
      }
      for (void* data : gpu.data) static_cast<void>(cudaFree(data));
      static_cast<void>(cudaFreeHost(gpu.pinned));
    });
  }

  /// An empty kernel on each GPU, and waiting for all.
  void launch() {
    each([](Gpu& gpu) {
      start(gpu.compute, 1, Nothing{});
      check(cudaEventRecord(gpu.done, gpu.compute), "cudaEventRecord");
    });
    each([](Gpu& gpu) { check(cudaEventSynchronize(gpu.done), "cudaEventSynchronize"); });
  }

  /// To or from the GPUs' page-locked memory, or a part for each GPU of `host`, if that is not null.
  void copy(cudaMemcpyKind kind, void* host = nullptr) {
    std::size_t part = 0;
    each([&](Gpu& gpu) {
      const bool up = kind == cudaMemcpyHostToDevice;
      void* const here = host == nullptr ? gpu.pinned : static_cast<char*>(host) + bytes_ * part++;
      check(cudaMemcpyAsync(up ? gpu.data[0] : here, up ? here : gpu.data[0], bytes_, kind, gpu.copies),
            "cudaMemcpyAsync");
    });
    each([](Gpu& gpu) { check(cudaStreamSynchronize(gpu.copies), "cudaStreamSynchronize"); });
  }

  /// A kernel that makes one array of another on each GPU.
  void add_one() {
    each([&](Gpu& gpu) {
      start(gpu.compute, bytes_ / sizeof(float),
            AddOne{static_cast<float*>(gpu.data[1]), static_cast<const float*>(gpu.data[0])});
    });
    each([](Gpu& gpu) { check(cudaStreamSynchronize(gpu.compute), "cudaStreamSynchronize"); });
  }

  /// The same with a part for each GPU of what the host has, and back.
  void add_one(const void* from, void* to) {
    std::size_t part = 0;
    each([&](Gpu& gpu) {
      std::memcpy(gpu.pinned, static_cast<const char*>(from) + bytes_ * part++, bytes_);
      check(cudaMemcpyAsync(gpu.data[0], gpu.pinned, bytes_, cudaMemcpyHostToDevice, gpu.compute), "cudaMemcpyAsync");
      start(gpu.compute, bytes_ / sizeof(float),
            AddOne{static_cast<float*>(gpu.data[1]), static_cast<const float*>(gpu.data[0])});
      check(cudaMemcpyAsync(gpu.pinned, gpu.data[1], bytes_, cudaMemcpyDeviceToHost, gpu.compute), "cudaMemcpyAsync");
    });
    part = 0;
    each([&](Gpu& gpu) {
      check(cudaStreamSynchronize(gpu.compute), "cudaStreamSynchronize");
      std::memcpy(static_cast<char*>(to) + bytes_ * part++, gpu.pinned, bytes_);
    });
  }

  /// The same with page-locked memory, without copies in the host's memory.
  void add_one_pinned(const void* from, void* to) {
    std::size_t part = 0;
    each([&](Gpu& gpu) {
      const std::size_t begin = bytes_ * part++;
      check(cudaMemcpyAsync(gpu.data[0], static_cast<const char*>(from) + begin, bytes_, cudaMemcpyHostToDevice,
                            gpu.compute),
            "cudaMemcpyAsync");
      start(gpu.compute, bytes_ / sizeof(float),
            AddOne{static_cast<float*>(gpu.data[1]), static_cast<const float*>(gpu.data[0])});
      check(cudaMemcpyAsync(static_cast<char*>(to) + begin, gpu.data[1], bytes_, cudaMemcpyDeviceToHost, gpu.compute),
            "cudaMemcpyAsync");
    });
    each([](Gpu& gpu) { check(cudaStreamSynchronize(gpu.compute), "cudaStreamSynchronize"); });
  }

  /// The same with a part for each GPU of what GPU 0 has, and back there.
  void add_one_from_first(const float* from, float* to) {
    const std::size_t size = bytes_ / sizeof(float);
    int index = 0;
    each([&](Gpu& gpu) {
      const std::size_t begin = size * static_cast<std::size_t>(index);
      if (index == 0) {
        start(gpu.compute, size, AddOne{to, from});
      } else {
        check(cudaMemcpyPeerAsync(gpu.data[0], index, from + begin, 0, bytes_, gpu.compute), "cudaMemcpyPeerAsync");
        start(gpu.compute, size, AddOne{static_cast<float*>(gpu.data[1]), static_cast<const float*>(gpu.data[0])});
        check(cudaMemcpyPeerAsync(to + begin, 0, gpu.data[1], index, bytes_, gpu.compute), "cudaMemcpyPeerAsync");
      }
      ++index;
    });
    each([](Gpu& gpu) { check(cudaStreamSynchronize(gpu.compute), "cudaStreamSynchronize"); });
  }

  /// `count` batches in turn. Each is copied to one of two buffers on every GPU. Then a kernel runs for `nanoseconds`.
  void batches(int count, std::uint64_t nanoseconds) {
    for (int n = 0; n < count; ++n) {
      each([&](Gpu& gpu) {
        const int place = n % 2;
        if (n > 1) check(cudaStreamWaitEvent(gpu.copies, gpu.computed[place], 0), "cudaStreamWaitEvent");
        check(cudaMemcpyAsync(gpu.data[place], gpu.pinned, bytes_, cudaMemcpyHostToDevice, gpu.copies),
              "cudaMemcpyAsync");
        check(cudaEventRecord(gpu.copied, gpu.copies), "cudaEventRecord");
        check(cudaStreamWaitEvent(gpu.compute, gpu.copied, 0), "cudaStreamWaitEvent");
        start(gpu.compute, 1, Spin{nanoseconds});
        check(cudaEventRecord(gpu.computed[place], gpu.compute), "cudaEventRecord");
      });
    }
    each([](Gpu& gpu) { check(cudaStreamSynchronize(gpu.compute), "cudaStreamSynchronize"); });
  }

 private:
  template <class F>
  void each(const F& f) {
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      static_cast<void>(cudaSetDevice(static_cast<int>(i)));
      f(gpus_[i]);
    }
    static_cast<void>(cudaSetDevice(before_));
  }

  std::size_t bytes_;
  std::vector<Gpu> gpus_;
  int before_ = 0;
};

}  // namespace benchmarks
