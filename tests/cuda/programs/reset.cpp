// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reset
//
// The program resets a GPU that fanout uses: each later use of it throws and says why, and destructors do nothing.
#include <cstdio>
#include <string>

#include "cuda/programs/expect.hpp"
#include "cuda/stand_in/stand_in.h"

namespace cuda = fanout::cuda;
using fanout::CudaDevice;
using fanout_test::Copied;
using fanout_test::expect;

namespace {

/// True if f() throws that the GPU was reset.
template <class F>
bool tells(const F& f) {
  try {
    f();
  } catch (const cuda::DeviceLost& lost) {
    return lost.index() == 0 && std::string(lost.what()).find("cudaDeviceReset()") != std::string::npos;
  } catch (const fanout::ReplicaError& error) {
    return std::string(error.what()).find("cudaDeviceReset()") != std::string::npos;
  }
  return false;
}

}  // namespace

int main() {
  fanout_test::need_gpus(1);
  if (!stand_in_is_here()) return 77;
  const auto input = fanout_test::numbers(100);
  {
    fanout::ParallelModel model{Copied{fanout::Tensor<float, 1>(5)}, fanout::cuda_devices({0})};
    const auto result = model(input, false);
    const auto pinned = cuda::pin(input);
    cuda::Stream stream(0);
    cuda::Event event;
    stream.record(event);
    cuda::synchronize(0);

    expect(::cudaSetDevice(0) == cudaSuccess);
    expect(::cudaDeviceReset() == cudaSuccess);

    expect(tells([&] { static_cast<void>(fanout::to_host(result)); }));
    expect(tells([&] { static_cast<void>(model(input, false)); }));
    expect(tells([&] { static_cast<void>(fanout::to(input, CudaDevice(0))); }));
    expect(tells([&] { stream.synchronize(); }));
    expect(tells([&] { static_cast<void>(event.is_done()); }));
    expect(tells([&] { cuda::synchronize(0); }));
    if (cuda::device_count() > 1) {  // the other GPUs work
      const auto there = fanout::to(input, CudaDevice(1));
      expect(fanout_test::equal(there, input));
    }
  }
  for (int i = 1; i < cuda::device_count(); ++i) cuda::empty_cache(i);
  expect(::cudaPeekAtLastError() == cudaSuccess);
  expect(std::string(stand_in_misuse()).empty());
  std::puts("as it should be");
}
