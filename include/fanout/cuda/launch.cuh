// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// launch() for CudaDevice, with the only kernel of fanout. Include it in a .cu before a ParallelModel of a model that
// launches is instantiated for GPUs.

#include <fanout/base/requirements.hpp>

#include <cstddef>

#include <cuda_runtime.h>

#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/device/launcher.hpp>

namespace fanout { inline namespace v0 {

namespace cuda::detail {

/// Threads per block. On every GPU of compute capability 7.5 or newer, a multiprocessor (1024, 1536 or 2048 threads)
/// holds a whole number of such blocks. Each thread may use 255 registers, the maximum.
inline constexpr unsigned threads_of_block = 256;

/// More blocks than any GPU runs at once, so that all of it is busy to the end. Far below the maximum of a grid. If n
/// is larger, each thread takes several indices.
inline constexpr std::size_t most_blocks = 65536;

template <class F>
__global__ void __launch_bounds__(threads_of_block) call_for_each(std::size_t n, F f) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    f(i);
    if (n - i <= step) break;  // i would overflow if n is close to 2^64
  }
}

}  // namespace cuda::detail

/// Runs `f` in a kernel on the device's stream, after the device's earlier work. Returns at once. Throws CudaError if
/// the launch is refused, and DeviceLost if the device is lost.
template <>
struct backend::Launcher<CudaDevice> {
  template <class F>
  static void launch(const CudaDevice& device, std::size_t n, const F& f) {
    if (n == 0) return;  // CUDA refuses an empty grid
    const std::size_t blocks = (n - 1) / cuda::detail::threads_of_block + 1;
    const dim3 grid(static_cast<unsigned>(blocks < cuda::detail::most_blocks ? blocks : cuda::detail::most_blocks));
    F copy(f);
    void* arguments[] = {&n, &copy};  // read before cudaLaunchKernel returns
    // Not by <<<>>>: its status would be that of the thread's last failed call, whatever that was.
    cuda::check(::cudaLaunchKernel(&cuda::detail::call_for_each<F>, grid, dim3(cuda::detail::threads_of_block),
                                   arguments, 0, device.stream().get()),
                "cudaLaunchKernel", device.id().index);
  }
};

}}  // namespace fanout::v0
