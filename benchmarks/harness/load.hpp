// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <harness/ticks.hpp>

namespace benchmarks {

/// What the processors did from its making on: this process and, apart from it, all others.
class Load {
 public:
  Load() : wall_(nanoseconds()), own_(own_nanoseconds()), idle_(idle_nanoseconds()) {}

  double wall_seconds() const { return 1e-9 * static_cast<double>(nanoseconds() - wall_); }
  /// Processor time of all threads of this process.
  double cpu_seconds() const { return 1e-9 * static_cast<double>(own_nanoseconds() - own_); }

  /// The share of one core that other processes, the kernel and the hypervisor used: what was neither idle nor ours.
  /// The kernel tells idle time in hundredths of a second, which is the resolution.
  double foreign_share() const {
    const std::int64_t wall = std::max<std::int64_t>(nanoseconds() - wall_, 1);
    const std::int64_t all = wall * sysconf(_SC_NPROCESSORS_ONLN);
    const std::int64_t foreign = all - (idle_nanoseconds() - idle_) - (own_nanoseconds() - own_);
    return std::max(0.0, static_cast<double>(foreign) / static_cast<double>(wall));
  }

 private:
  static std::int64_t own_nanoseconds() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
  }

  static std::int64_t idle_nanoseconds() {
    long long user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
    if (std::FILE* file = std::fopen("/proc/stat", "r")) {
      if (std::fscanf(file, "cpu %lld %lld %lld %lld %lld", &user, &nice, &system, &idle, &waiting) != 5) idle = 0;
      std::fclose(file);
    }
    return (idle + waiting) * (1'000'000'000 / sysconf(_SC_CLK_TCK));
  }

  std::int64_t wall_;
  std::int64_t own_;
  std::int64_t idle_;
};

}  // namespace benchmarks
