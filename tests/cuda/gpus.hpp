// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include <fanout/cuda/current_device.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/futex.hpp>

#include "cuda/stand_in/stand_in.h"
#include "support/skip.hpp"

namespace fanout_test {

// What the library never destroys: a device's streams and staging memory, a GPU's pool, NCCL's communicators.
inline const bool left_by_design = [] {
  if (!stand_in_is_here()) return false;
  for (const char* kind : {"streams", "events", "pools", "pinned memory", "communicators"})
    stand_in_allow_at_exit(kind, -1);
  return true;
}();

/// Releases the memory that the library keeps for later calls.
inline void release_kept_memory() {
  for (fanout::cuda::detail::GpuSlot& slot : fanout::cuda::detail::gpus) {
    fanout::cuda::detail::GpuState* const gpu = slot.gpu.load();
    if (gpu == nullptr || !gpu->usable()) continue;
    fanout::cuda::detail::trim_parcels(*gpu);
    fanout::cuda::detail::trim_pool(*gpu);
  }
}

/// Releases it before the stand-in looks at what is left.
inline const struct EmptiedAtExit {
  EmptiedAtExit() = default;
  EmptiedAtExit(const EmptiedAtExit&) = delete;
  EmptiedAtExit& operator=(const EmptiedAtExit&) = delete;
  ~EmptiedAtExit() {
    if (stand_in_is_here()) release_kept_memory();
  }
} emptied_at_exit;

/// Whether there are so many GPUs; if not, the test is skipped.
inline bool has_gpus(int count) {
  const int there = fanout::cuda::detail::count_gpus().count;
  if (there >= count) return true;
  skip(there == 0 ? "no CUDA device" : "too few CUDA devices");
  return false;
}

/// The same for tests that make calls fail, or look at what was called.
inline bool has_stand_in(int gpus) {
  if (!has_gpus(gpus)) return false;
  if (stand_in_is_here()) return true;
  skip("not the stand-in for the CUDA runtime");
  return false;
}

inline void wait_for_all_gpus() {
  for (int i = 0; i < fanout::cuda::detail::count_gpus().count; ++i) fanout::cuda::synchronize(i);
}

/// GPUs that were lost are there again, as in a new process. A lost GPU keeps the memory that was released on it, and
/// this test is why: so it may be left at exit.
inline void restore_lost_gpus(int memory_before) {
  bool lost = false;
  for (int i = 0; i < fanout::cuda::detail::count_gpus().count; ++i) {
    if (fanout::cuda::detail::losses[i].code.load() == cudaSuccess) continue;
    stand_in_poison(i, 0);  // first, or the loss could be noted again
    fanout::cuda::detail::losses[i].code.store(cudaSuccess);
    lost = true;
  }
  if (!lost) return;
  wait_for_all_gpus();
  release_kept_memory();
  static int left = 0;
  left += stand_in_alive("device memory") - memory_before;
  stand_in_allow_at_exit("device memory", left);
}

/// At its end, nothing was done that CUDA forbids; and a GPU that the test lost is there again.
struct Watched {
  Watched() {
    if (!stand_in_is_here()) return;
    CHECK(std::string(stand_in_misuse()) == "");
    release_kept_memory();
    memory_ = stand_in_alive("device memory");
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() {
    if (!stand_in_is_here()) return;
    CHECK(stand_in_no_failures() == 0);
    restore_lost_gpus(memory_);
    CHECK(std::string(stand_in_misuse()) == "");
  }

 private:
  int memory_ = 0;
};

/// Holds up a stream in which it is called, until it is opened.
class Barrier {
 public:
  void open() {
    word_.store(1);
    fanout::detail::unpark_all(word_);
  }
  void operator()() const {
    while (word_.load() == 0) fanout::detail::park(word_, 0);
  }

 private:
  fanout::detail::Atomic<std::uint32_t> word_{0};
};

/// Calls f() in order with the work of a stream, as a kernel is called. f lives until then.
template <class F>
void call_in(fanout::cuda::StreamRef stream, F& f) {
  const fanout::cuda::DeviceGuard entered(stream.device());
  fanout::cuda::check(::cudaLaunchHostFunc(
                          stream.get(), [](void* function) { (*static_cast<F*>(function))(); }, &f),
                      "cudaLaunchHostFunc", stream.device());
}

/// What f() throws, as text; empty if nothing.
template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const fanout::Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace fanout_test
