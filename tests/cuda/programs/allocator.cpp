// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// allocator
//
// All memory of fanout's on two GPUs comes from the program's allocator. Without memory there, calls throw OutOfMemory,
// and work afterwards.
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>

#include <fanout/cuda/allocator.hpp>

#include "cuda/programs/expect.hpp"
#include "cuda/stand_in/stand_in.h"

namespace cuda = fanout::cuda;
using fanout_test::Copied;
using fanout_test::expect;

namespace {

// [allocator]
/// With RMM, these call `allocate_async` and `deallocate_async` of a device_async_resource_ref.
struct FromDriver {
  void* allocate(std::size_t bytes, cudaStream_t stream) {
    void* data = nullptr;
    if (::cudaMallocAsync(&data, bytes, stream) != cudaSuccess) throw std::bad_alloc();
    return data;
  }
  void deallocate(void* data, std::size_t, cudaStream_t stream) noexcept {
    static_cast<void>(::cudaFreeAsync(data, stream));
  }
};
// [/allocator]

struct Counted : FromDriver {
  std::atomic<long> bytes{0};
  std::atomic<bool> is_empty{false};
  std::atomic<bool> is_broken{false};

  void* allocate(std::size_t size, cudaStream_t stream) {
    if (is_empty) throw std::bad_alloc();
    if (is_broken) throw std::runtime_error("the allocator is broken");
    void* const data = FromDriver::allocate(size, stream);
    bytes += static_cast<long>(size);
    return data;
  }
  void deallocate(void* data, std::size_t size, cudaStream_t stream) noexcept {
    FromDriver::deallocate(data, size, stream);
    bytes -= static_cast<long>(size);
  }
};
Counted first;
Counted second;

template <class E, class F>
std::string thrown(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

}  // namespace

int main() {
  fanout_test::need_gpus(3);
  if (stand_in_is_here()) stand_in_forget_counts();
  cuda::use_allocator(first, 0);
  cuda::use_allocator(second, fanout::CudaDevice(1));
  const auto x = fanout_test::numbers(100'000);  // too large for what is sent together
  const auto few = fanout_test::numbers(100);
  {
    fanout::ParallelModel model{Copied{fanout::Tensor<float, 1>(5)}, fanout::cuda_devices({.count = 2})};
    expect(fanout_test::equal(model(few, false), few));
    expect(fanout_test::equal(model(x, false), x));
    expect(fanout_test::equal(model.async(x, false).get(), x));
    if (stand_in_is_here()) {
      expect(stand_in_calls("cudaMallocFromPoolAsync") == 0);
      expect(stand_in_calls("cudaMemPoolCreate") == 0);
    }
    expect(first.bytes > 0 && second.bytes > 0);
    expect(cuda::memory_reserved(0) == 0);

    second.is_empty = true;
    expect(thrown<fanout::OutOfMemory>([&] { model(x, false); }).find("out of memory of cuda:1") == 0);
    second.is_empty = false;
    second.is_broken = true;
    expect(thrown<std::exception>([&] { model(x, false); }).find("the allocator is broken") != std::string::npos);
    second.is_broken = false;
    expect(fanout_test::equal(model(x, false), x));
  }
  cuda::empty_cache();
  expect(first.bytes == 0 && second.bytes == 0);

  expect(thrown<fanout::Error>([] { cuda::use_allocator(first, 0); }).find("has an allocator already") !=
         std::string::npos);
  const auto there = fanout::to(x, fanout::CudaDevice(2));
  expect(thrown<fanout::Error>([] { cuda::use_allocator(first, 2); }).find("one on which it has") != std::string::npos);
  expect(fanout_test::equal(there, x));
  std::puts("as it should be");
}
