// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#include <fanout/base/annotate.hpp>
#include <fanout/cuda.hpp>

#if defined(__CUDACC__)
#include <fanout/cuda/launch.cuh>
#else  // on the stand-in of the tests, to see that all of it runs
#include <chrono>
#include <thread>

#include "cuda/host_launcher.hpp"
#endif

namespace benchmarks {

using fanout::cuda::check;

struct Nothing {
  FANOUT_HOST_DEVICE void operator()(std::size_t) const {}
};

struct AddOne {
  float* to;
  const float* from;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const { to[i] = from[i] + 1; }
};

/// Keeps one thread busy so long.
struct Spin {
  std::uint64_t nanoseconds;

  FANOUT_HOST_DEVICE void operator()(std::size_t) const {
#if defined(__CUDA_ARCH__)
    std::uint64_t begin = 0;
    std::uint64_t now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
#elif !defined(__CUDACC__)
    std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
#endif
  }
};

/// f(i) for each i below n.
#if defined(__CUDACC__)
template <class F>
__global__ void call_each(std::size_t n, F f) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}

template <class F>
void start(cudaStream_t stream, std::size_t n, const F& f) {
  const unsigned threads = n < 256 ? static_cast<unsigned>(n) : 256;
  call_each<<<static_cast<unsigned>((n + threads - 1) / threads), threads, 0, stream>>>(n, f);
  check(cudaGetLastError(), "<<<>>>");
}
#else
template <class F>
void start(cudaStream_t stream, std::size_t n, const F& f) {
  struct Call {
    std::size_t n;
    F f;
  };
  const auto call = [](void* what) {
    auto* mine = static_cast<Call*>(what);
    for (std::size_t i = 0; i < mine->n; ++i) mine->f(i);
    delete mine;
  };
  check(cudaLaunchHostFunc(stream, call, new Call{n, f}), "cudaLaunchHostFunc");
}
#endif

/// What one would write without fanout, with everything made before: on each of some cards two streams, events and
/// memory for two batches, and page-locked memory for one.
class ByHand {
 public:
  struct Card {
    cudaStream_t compute = nullptr;
    cudaStream_t copies = nullptr;
    cudaEvent_t done = nullptr;
    cudaEvent_t copied = nullptr;
    cudaEvent_t computed[2] = {};
    void* data[2] = {};
    void* pinned = nullptr;
  };

  ByHand(int cards, std::size_t bytes) : bytes_(bytes), cards_(static_cast<std::size_t>(cards)) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    each([&](Card& card) {
      check(cudaStreamCreate(&card.compute), "cudaStreamCreate");
      check(cudaStreamCreate(&card.copies), "cudaStreamCreate");
      for (cudaEvent_t* event : {&card.done, &card.copied, &card.computed[0], &card.computed[1]}) {
        check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
      }
      for (void*& data : card.data) check(cudaMalloc(&data, bytes), "cudaMalloc");
      check(cudaMallocHost(&card.pinned, bytes), "cudaMallocHost");
    });
  }
  ByHand(const ByHand&) = delete;
  ByHand& operator=(const ByHand&) = delete;
  ~ByHand() {
    each([](Card& card) {
      static_cast<void>(cudaStreamDestroy(card.compute));
      static_cast<void>(cudaStreamDestroy(card.copies));
      for (cudaEvent_t event : {card.done, card.copied, card.computed[0], card.computed[1]}) {
        static_cast<void>(cudaEventDestroy(event));
      }
      for (void* data : card.data) static_cast<void>(cudaFree(data));
      static_cast<void>(cudaFreeHost(card.pinned));
    });
  }

  /// An empty kernel on each card, and waiting for all.
  void launch() {
    each([](Card& card) {
      start(card.compute, 1, Nothing{});
      check(cudaEventRecord(card.done, card.compute), "cudaEventRecord");
    });
    each([](Card& card) { check(cudaEventSynchronize(card.done), "cudaEventSynchronize"); });
  }

  /// To or from the cards' page-locked memory, or a part for each card of `host`, if that is not null.
  void copy(cudaMemcpyKind kind, void* host = nullptr) {
    std::size_t part = 0;
    each([&](Card& card) {
      const bool up = kind == cudaMemcpyHostToDevice;
      void* const here = host == nullptr ? card.pinned : static_cast<char*>(host) + bytes_ * part++;
      check(cudaMemcpyAsync(up ? card.data[0] : here, up ? here : card.data[0], bytes_, kind, card.copies),
            "cudaMemcpyAsync");
    });
    each([](Card& card) { check(cudaStreamSynchronize(card.copies), "cudaStreamSynchronize"); });
  }

  /// A kernel that makes one array of another on each card.
  void add_one() {
    each([&](Card& card) {
      start(card.compute, bytes_ / sizeof(float),
            AddOne{static_cast<float*>(card.data[1]), static_cast<const float*>(card.data[0])});
    });
    each([](Card& card) { check(cudaStreamSynchronize(card.compute), "cudaStreamSynchronize"); });
  }

  /// The same with a part for each card of what the host has, and back.
  void add_one(const void* from, void* to) {
    std::size_t part = 0;
    each([&](Card& card) {
      std::memcpy(card.pinned, static_cast<const char*>(from) + bytes_ * part++, bytes_);
      check(cudaMemcpyAsync(card.data[0], card.pinned, bytes_, cudaMemcpyHostToDevice, card.compute),
            "cudaMemcpyAsync");
      start(card.compute, bytes_ / sizeof(float),
            AddOne{static_cast<float*>(card.data[1]), static_cast<const float*>(card.data[0])});
      check(cudaMemcpyAsync(card.pinned, card.data[1], bytes_, cudaMemcpyDeviceToHost, card.compute),
            "cudaMemcpyAsync");
    });
    part = 0;
    each([&](Card& card) {
      check(cudaStreamSynchronize(card.compute), "cudaStreamSynchronize");
      std::memcpy(static_cast<char*>(to) + bytes_ * part++, card.pinned, bytes_);
    });
  }

  /// Batches one after the other: each is copied to the cards, in turns to two places, and then a kernel runs so long.
  void batches(int count, std::uint64_t nanoseconds) {
    for (int n = 0; n < count; ++n) {
      each([&](Card& card) {
        const int place = n % 2;
        if (n > 1) check(cudaStreamWaitEvent(card.copies, card.computed[place], 0), "cudaStreamWaitEvent");
        check(cudaMemcpyAsync(card.data[place], card.pinned, bytes_, cudaMemcpyHostToDevice, card.copies),
              "cudaMemcpyAsync");
        check(cudaEventRecord(card.copied, card.copies), "cudaEventRecord");
        check(cudaStreamWaitEvent(card.compute, card.copied, 0), "cudaStreamWaitEvent");
        start(card.compute, 1, Spin{nanoseconds});
        check(cudaEventRecord(card.computed[place], card.compute), "cudaEventRecord");
      });
    }
    each([](Card& card) { check(cudaStreamSynchronize(card.compute), "cudaStreamSynchronize"); });
  }

 private:
  template <class F>
  void each(const F& f) {
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      static_cast<void>(cudaSetDevice(static_cast<int>(i)));
      f(cards_[i]);
    }
    static_cast<void>(cudaSetDevice(before_));
  }

  std::size_t bytes_;
  std::vector<Card> cards_;
  int before_ = 0;
};

}  // namespace benchmarks
