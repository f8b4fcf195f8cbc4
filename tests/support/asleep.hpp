// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

namespace fanout_test {

/// The kernel's number of this thread.
inline int this_thread() { return static_cast<int>(::syscall(SYS_gettid)); }

/// Whether the thread of this number sleeps in the kernel.
inline bool is_asleep(int thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  char text[256] = {};
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    (void)!std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
  }
  const char* name_end = std::strrchr(text, ')');  // number (name) state ...
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
}

/// Waits until a thread has said its number and sleeps in the kernel. A test can then wake a thread that really waits.
inline void until_asleep(const std::atomic<int>& thread) {
  while (thread.load() == 0 || !is_asleep(thread.load())) std::this_thread::yield();
}

/// Waits until a flag is set.
inline void until(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::yield();
}

}  // namespace fanout_test
