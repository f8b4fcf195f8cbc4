// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>

namespace fanout_test {

/// The number of threads of this process, as the kernel counts them.
inline std::size_t count_threads() {
  // ThreadSanitizer starts one of its own with the first thread.
  [[maybe_unused]] static const bool counted_from_now = (std::thread([] {}).join(), true);
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

/// The same once it has not changed for 20 ms, since the kernel may list a thread for a moment after it was joined.
inline std::size_t count_settled_threads() {
  std::size_t count = count_threads();
  for (int unchanged = 0; unchanged < 20;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::size_t now = count_threads();
    unchanged = now == count ? unchanged + 1 : 0;
    count = now;
  }
  return count;
}

/// True if the process has so many threads, at the latest after a second.
inline bool has_threads(std::size_t count) {
  for (int turn = 0; turn < 1'000 && count_threads() != count; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return count_threads() == count;
}

}  // namespace fanout_test
