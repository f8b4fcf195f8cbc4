// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// contexts [other]
//
// Two models, on GPU 1 and on GPUs 2 and 3 of at least four, from their making to their end: no other GPU gets a
// context, and every thread keeps the device that it had: none, or with `other` one that the program set.
#include <initializer_list>
#include <thread>
#include <utility>

#include <cuda.h>

#include <fanout/cuda/visible/visible_devices_report.hpp>

#include "cuda/programs/expect.hpp"
#include "cuda/stand_in/stand_in.h"

namespace cuda = fanout::cuda;
using fanout::CudaDevice;
using fanout_test::expect;

namespace {

CUcontext current_context() {
  CUcontext context = nullptr;
  cuda::check(cuda::detail::status_of(cuda::detail::driver().current_context(&context)), "cuCtxGetCurrent");
  return context;
}

bool has_context(int gpu) {
  CUdevice device = 0;
  unsigned flags = 0;
  int active = 0;
  cuda::check(cuda::detail::status_of(cuda::detail::driver().get_device(&device, gpu)), "cuDeviceGet");
  cuda::check(cuda::detail::status_of(cuda::detail::driver().primary_context_state(device, &flags, &active)),
              "cuDevicePrimaryCtxGetState");
  return active != 0;
}

/// What a device's thread has as its current context, between two calls.
struct Look : fanout::detail::Task {
  explicit Look(const CudaDevice& device) {
    prepare([](fanout::detail::Task& task) noexcept {
      auto& look = static_cast<Look&>(task);
      look.context = current_context();
      if (stand_in_is_here()) look.depth = stand_in_depth();
    });
    device.worker().post(*this);
    if (!device.worker().has_thread() && device.worker().take_back(*this)) run();
    wait(0, fanout::detail::fork_epoch());
  }
  CUcontext context = nullptr;
  int depth = 0;
};

/// Which GPUs have contexts, and what this thread was before anything was done.
struct Watch {
  int set = -1;  // the device that the program set
  CUcontext context = current_context();
  int depth = stand_in_is_here() ? stand_in_depth() : 0;

  void look(std::initializer_list<int> used, std::source_location where = std::source_location::current()) const {
    for (int gpu = 0; gpu < cuda::device_count(); ++gpu) {
      bool may_have = gpu == set;
      for (const int one : used) may_have = may_have || one == gpu;
      expect(has_context(gpu) == may_have, where);
    }
    expect(current_context() == context, where);
    if (stand_in_is_here()) expect(stand_in_depth() == depth, where);
    if (set >= 0) {
      int current = -1;
      expect(::cudaGetDevice(&current) == cudaSuccess && current == set, where);
    }
    // On a thread that does nothing of its own, as the workers are, there is no device to be returned to.
    for (const int one : used) {
      const Look worker{CudaDevice(one)};
      expect((worker.context == nullptr && worker.depth == 0) || worker.context == context, where);
    }
  }
};

template <class F>
bool throws(const F& f) {
  try {
    f();
  } catch (const fanout::Error&) {
    return true;
  }
  return false;
}

void live(const Watch& watch) {
  const auto x = fanout_test::numbers(50);
  watch.look({});
  {
    fanout::ParallelModel one{fanout_test::Copied{fanout::Tensor<float, 1>(7)}, fanout::cuda_devices({1})};
    watch.look({});
    static_cast<void>(cuda::visible_devices_report());
    static_cast<void>(cuda::device_name(0));
    static_cast<void>(cuda::memory_allocated(0));
    watch.look({});
    expect(fanout_test::equal(one(x, false), x));
    watch.look({1});
    fanout::ParallelModel two{fanout_test::Copied{fanout::Tensor<float, 1>(7)}, fanout::cuda_devices({2, 3})};
    watch.look({1});
    auto y = two(x, false);
    watch.look({1, 2, 3});
    expect(fanout_test::equal(y, x));
    expect(throws([&] { one(x, true); }));
    expect(throws([&] { two(x, true); }));
    expect(fanout_test::equal(one(y, false), x));  // from another GPU
    expect(throws([] { cuda::device_name(4711); }));
    watch.look({1, 2, 3});
    for (int n = 0; n < 3; ++n) {
      two.update([](fanout_test::Copied& original) { original.weights[0] += 1; });
      auto pending = two.async(x, false);
      auto other = one.async(x, false);
      expect(fanout_test::equal(pending.get(), x));
      expect(fanout_test::equal(other.get(), x));
    }
    watch.look({1, 2, 3});
    const auto moved = fanout::to(y, CudaDevice(1));
    const auto pinned = cuda::pin(x);
    expect(fanout_test::equal(fanout::to(pinned, CudaDevice(3)), x));
    expect(fanout_test::equal(moved, x));
    static_cast<void>(cuda::memory_info(3));
    cuda::synchronize(2);
    cuda::empty_cache();
    watch.look({1, 2, 3});
    // The last of a result may go on a thread that has never seen CUDA.
    std::thread([gone = std::move(y)]() mutable { gone = fanout::Tensor<float, 2>(); }).join();
    watch.look({1, 2, 3});
  }
  watch.look({1, 2, 3});
}

}  // namespace

int main(int argc, char** argv) {
  fanout_test::need_gpus(4);
  Watch watch;
  if (fanout_test::is_mode(argc, argv, "other")) {
    cuda::set_device(3);
    watch = {.set = 3};
  }
  live(watch);
  cuda::empty_cache();  // then no device memory is left
  // And on a thread that is not main's, which has no device.
  std::thread([] { expect(current_context() == nullptr); }).join();
  std::puts("as it should be");
}
