// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace benchmarks {

/// Binds all threads of the process but the calling one to this core: those of a pool that offers no way to say where
/// its threads run. Call it when the pool has been used.
inline void pin_others(int core) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<std::size_t>(core), &mask);
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent* task = readdir(tasks)) {
    const auto thread = static_cast<pid_t>(std::atoi(task->d_name));
    if (thread != 0 && thread != gettid()) sched_setaffinity(thread, sizeof mask, &mask);
  }
  closedir(tasks);
}

}  // namespace benchmarks
