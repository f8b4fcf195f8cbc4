// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// thrust_policy(ctx) for contexts of GPUs and of host devices, in a .cu.

#include <fanout/base/requirements.hpp>

#include <cstddef>

#include <thrust/system/cuda/execution_policy.h>

#include <fanout/adapt/thrust.hpp>
#include <fanout/cuda/cuda_device.hpp>
#include <fanout/memory/memory_operations.hpp>

namespace fanout { inline namespace v0 {

namespace cuda::detail {

/// Allocates Thrust's temporary memory from the GPU's pool, in order with the device's work. By default Thrust calls
/// cudaMalloc and cudaFree, which wait for the whole GPU.
struct TemporaryMemory {
  using value_type = char;

  backend::Memory memory;

  char* allocate(std::size_t bytes) const {
    return static_cast<char*>(memory.operations->allocate(memory.space, bytes));
  }
  void deallocate(char* data, std::size_t bytes) const noexcept {
    memory.operations->release(memory.space, data, bytes, nullptr);
  }
};

}  // namespace cuda::detail

/// On a GPU, Thrust's algorithms run on the device's stream, in order with its other work. Their temporary memory comes
/// from the GPU's pool. Algorithms that return a value (reduce, copy_if) wait for it; others return at once. They throw
/// thrust::system_error.
template <fanout::detail::ContextOn<CudaDevice> C>
auto thrust_policy(C& ctx) {
  const cuda::detail::TemporaryMemory memory{ctx.device().memory()};
  return ::thrust::cuda::par_nosync(memory).on(ctx.device().stream().get());
}

}}  // namespace fanout::v0
