// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/worker/linux_threads.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A set of cores in the kernel's form. Null if there are no cores, or no memory.
class CoreMask {
 public:
  /// No cores, with room for numbers below `count`.
  explicit CoreMask(std::size_t count) noexcept : count_(count), mask_(count == 0 ? nullptr : CPU_ALLOC(count)) {
    if (mask_ != nullptr) CPU_ZERO_S(bytes(), mask_);
  }
  /// These cores, in ascending order.
  explicit CoreMask(const std::vector<int>& cores) noexcept
      : CoreMask(cores.empty() ? std::size_t{0} : static_cast<std::size_t>(cores.back()) + 1) {
    if (mask_ == nullptr) return;
    for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), bytes(), mask_);
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

/// A template, so that it compiles where the C library has no such function.
template <class Attributes>
bool bind_attributes(Attributes& attributes, const std::vector<int>& cores) noexcept {
  if constexpr (requires(const CoreMask& mask) { pthread_attr_setaffinity_np(&attributes, 0, mask.get()); }) {
    const CoreMask mask(cores);
    return mask.get() != nullptr && pthread_attr_setaffinity_np(&attributes, mask.bytes(), mask.get()) == 0;
  }
  return false;
}

/// Calls `f(mask, possible)` with the affinity mask of a thread, if the kernel tells it. Its cores have numbers below
/// `possible`.
template <class F>
void with_mask_of(pid_t thread, const F& f) {
  for (std::size_t possible = 1024; possible <= (1U << 20); possible *= 2) {
    const CoreMask mask(possible);
    if (mask.get() == nullptr) return;
    // It fails while the mask is too short.
    if (::sched_getaffinity(thread, mask.bytes(), mask.get()) == 0) return f(mask, possible);
  }
}

std::vector<int> LinuxThreads::process_cores() {
  std::vector<int> cores;
  with_mask_of(::getpid(), [&cores](const CoreMask& mask, std::size_t possible) {
    for (std::size_t core = 0; core < possible; ++core) {
      if (CPU_ISSET_S(core, mask.bytes(), mask.get())) cores.push_back(static_cast<int>(core));
    }
  });
  return cores;
}

void LinuxThreads::move_to(const std::vector<int>& cores) noexcept {
  static thread_local Clock::Time next = 0;
  const Clock::Time now = Clock::now();
  if (now < next) return;
  next = now + 1'000'000;
  with_mask_of(0, [&cores](const CoreMask& mask, std::size_t possible) {
    for (const int core : cores) {
      if (static_cast<std::size_t>(core) >= possible) continue;
      if (!CPU_ISSET_S(static_cast<std::size_t>(core), mask.bytes(), mask.get())) continue;
      const CoreMask alone(possible);
      if (alone.get() == nullptr) return;
      CPU_SET_S(static_cast<std::size_t>(core), alone.bytes(), alone.get());
      ::sched_setaffinity(0, alone.bytes(), alone.get());
      ::sched_setaffinity(0, mask.bytes(), mask.get());
      return;
    }
  });
}

bool LinuxThreads::bind(pthread_attr_t& attributes, const std::vector<int>& cores) noexcept {
  return bind_attributes(attributes, cores);
}

void LinuxThreads::bind(pthread_t thread, const std::vector<int>& cores) noexcept {
  const CoreMask mask(cores);
  if (mask.get() != nullptr) ::pthread_setaffinity_np(thread, mask.bytes(), mask.get());
}

void LinuxThreads::name(pthread_t thread, const std::string& name) noexcept {
  ::pthread_setname_np(thread, name.substr(0, 15).c_str());
}

void LinuxThreads::wake_in_time() noexcept { ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

}}}  // namespace fanout::v0::detail
