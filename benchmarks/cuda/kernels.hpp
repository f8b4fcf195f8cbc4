// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The kernels of the benchmarks. nvcc makes kernels of them. The C++ compiler makes host functions, which the stand-in
// for the CUDA runtime calls in the order of a stream.

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include <fanout/base/annotate.hpp>
#include <fanout/cuda.hpp>

#if defined(__CUDACC__)
#include <fanout/cuda/launch.cuh>
#else
#include <chrono>
#include <thread>

#include "cuda/host_launcher.hpp"
#include "cuda/stand_in/stand_in.h"
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

/// Keeps one thread busy for this time.
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

/// Writes to an address that nobody has, so that the GPU is lost.
struct Fault {
  int device;  // the stand-in must be told

  FANOUT_HOST_DEVICE void operator()(std::size_t) const {
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<volatile float*>(std::uintptr_t{64}) = 1;
#elif !defined(__CUDACC__)
    stand_in_poison(device, cudaErrorIllegalAddress);
#endif
  }
};

/// Fills an array with one number.
struct Fill {
  float* to;
  float value;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const { to[i] = value; }
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

/// Keeps one thread of the GPU busy for so long, in the order of the stream.
inline void busy(cudaStream_t stream, double milliseconds) {
  start(stream, 1, Spin{static_cast<std::uint64_t>(milliseconds * 1e6)});
}

}  // namespace benchmarks
