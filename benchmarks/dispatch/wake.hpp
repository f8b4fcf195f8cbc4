// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include <harness/cores.hpp>
#include <harness/ticks.hpp>

namespace benchmarks {

/// What it takes here to wake a thread that has slept for a millisecond on this other core, until it runs, in ticks:
/// the median of 21 times.
inline std::int64_t ticks_of_a_wake(int other_core) {
  std::atomic<int> asked{0}, answered{0};
  std::atomic<std::int64_t> woken_at{0};
  constexpr int count = 21;
  std::array<std::int64_t, count> values{};
  {
    const std::jthread sleeper([&] {
      bind_to(other_core);
      for (int i = 0; i < count; ++i) {
        asked.wait(i);
        woken_at.store(ticks());
        answered.store(i + 1);
      }
    });
    for (int i = 0; i < count; ++i) {
      usleep(1000);
      const std::int64_t begin = ticks();
      asked.store(i + 1);
      asked.notify_one();
      while (answered.load() != i + 1) {
      }
      values[static_cast<std::size_t>(i)] = woken_at.load() - begin;
    }
  }
  std::nth_element(values.begin(), values.begin() + count / 2, values.end());
  return values[count / 2];
}

}  // namespace benchmarks
