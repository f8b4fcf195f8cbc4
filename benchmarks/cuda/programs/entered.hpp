// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// In an entered device, a thread's operations on memory are in order with its kernels, and do not wait for them.

#include "benchmarks/cuda/kernels.hpp"
#include "benchmarks/cuda/programs/line.hpp"

namespace benchmarks::entered {

inline void measure(const Settings& settings, Line& line) {
  using Array = fanout::Tensor<float, 1>;
  const fanout::CudaDevice device(0);
  const auto stream = device.stream().get();
  const std::size_t size = settings.megabytes << 18U;
  float wanted = 1;
  const double waited = median_of(settings.rounds, [&] {
    const auto in_device = device.enter();
    Array x = fanout::to(Array(size), device);
    Array early, late;
    const double seconds = seconds_of([&] {
      busy(stream, settings.milliseconds);
      start(stream, size, Fill{x.data(), wanted});
      early = x;  // after Fill and before AddOne
      start(stream, size, AddOne{x.data(), x.data()});
      {
        Array released = x;  // is used by a kernel when it goes
        busy(stream, settings.milliseconds);
        start(stream, size, Fill{released.data(), -1});
      }
      late = x;  // may get the memory of `released`
    });
    device.synchronize();
    line.right(others_than(early, wanted), size);
    line.right(others_than(late, wanted + 1), size);
    wanted += 2;
    return seconds;
  });
  // Time until all of it was enqueued, of the time of the kernels.
  line.ratio("waited", waited / (2 * settings.milliseconds / 1e3), 0, 0.5);
}

inline constexpr Program program{"entered", 1, 20, &measure};

}  // namespace benchmarks::entered
