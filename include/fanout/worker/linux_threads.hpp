// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace fanout { inline namespace v0 { namespace detail {

/// A set of cores in the kernel's form, for cores with numbers below `count`. Null if there is no memory.
class CoreMask {
 public:
  explicit CoreMask(std::size_t count) noexcept : count_(count), mask_(CPU_ALLOC(count)) {
    if (mask_ != nullptr) CPU_ZERO_S(bytes(), mask_);
  }
  CoreMask(const CoreMask&) = delete;
  CoreMask& operator=(const CoreMask&) = delete;
  ~CoreMask() {
    if (mask_ != nullptr) CPU_FREE(mask_);
  }

  cpu_set_t* get() const noexcept { return mask_; }
  std::size_t bytes() const noexcept { return CPU_ALLOC_SIZE(count_); }

 private:
  std::size_t count_;
  cpu_set_t* mask_;
};

/// What Linux knows of threads beyond POSIX.
struct LinuxThreads {
  /// The cores that this process may use: the affinity mask of its first thread. Empty if the kernel does not tell.
  static std::vector<int> process_cores() {
    std::vector<int> cores;
    for (std::size_t possible = 1024; possible <= (1U << 20); possible *= 2) {
      const CoreMask mask(possible);
      if (mask.get() == nullptr) break;
      // It fails while the mask is too short.
      if (::sched_getaffinity(::getpid(), mask.bytes(), mask.get()) != 0) continue;
      for (std::size_t core = 0; core < possible; ++core) {
        if (CPU_ISSET_S(core, mask.bytes(), mask.get())) cores.push_back(static_cast<int>(core));
      }
      break;
    }
    return cores;
  }

  /// Binds the calling thread to these cores, in ascending order. Does nothing if there are none, or if the process has
  /// lost them meanwhile.
  static void bind(const std::vector<int>& cores) noexcept {
    if (cores.empty()) return;
    const CoreMask mask(static_cast<std::size_t>(cores.back()) + 1);
    if (mask.get() == nullptr) return;
    for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), mask.bytes(), mask.get());
    ::sched_setaffinity(0, mask.bytes(), mask.get());
  }

  /// Names the calling thread. The kernel keeps 15 characters.
  static void name(const std::string& name) noexcept { ::prctl(PR_SET_NAME, name.c_str(), 0UL, 0UL, 0UL); }

  /// Lets timed sleeps of the calling thread end on time. Otherwise the kernel may add 50 us.
  static void wake_in_time() noexcept { ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }
};

}}}  // namespace fanout::v0::detail
