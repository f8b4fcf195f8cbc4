// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <harness/ticks.hpp>

namespace benchmarks {

/// This thread among all that asked, from 1 on; after 255 the numbers from 2 on are used again, so that the first
/// thread to ask, the caller, keeps its own.
inline std::uint8_t number_of_this_thread() {
  static std::atomic<unsigned> asked{0};
  static thread_local std::uint8_t number = 0;
  if (number == 0) {
    const unsigned before = asked.fetch_add(1);
    number = static_cast<std::uint8_t>(before == 0 ? 1 : 2 + (before - 1) % 254);
  }
  return number;
}

/// Work that nothing but the core's own speed decides: multiplications that wait for each other.
inline void work(std::uint64_t turns) {
  for (std::uint64_t x = turns; turns > 0; --turns) {
    x = x * 3 + 1;
    asm volatile("" : "+r"(x));
  }
}

/// How many turns of work() take this long, found by trying: the fastest of several times.
inline std::uint64_t turns_in(double nanoseconds_wanted) {
  if (nanoseconds_wanted <= 0) return 0;
  constexpr std::uint64_t turns = 20'000;
  std::int64_t least = 1'000'000'000;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t begin = nanoseconds();
    work(turns);
    least = std::min(least, nanoseconds() - begin);
  }
  return static_cast<std::uint64_t>(nanoseconds_wanted * static_cast<double>(turns) / static_cast<double>(least));
}

/// The two bodies of a fork-join: bodies(0) and bodies(1) do the same amount of work, and each notes which thread ran
/// it, and on request on which core. What a body writes lies in lines of its own, which nobody reads before the end, so
/// that noting costs no traffic between cores.
class Bodies {
 public:
  /// With `meeting` each body also waits until the other one has begun, which takes two threads; after a millisecond it
  /// gives up.
  explicit Bodies(bool rendezvous = false, bool notes_cores = false)
      : rendezvous_(rendezvous), notes_cores_(notes_cores) {}

  void set_turns(std::uint64_t turns) { turns_ = turns; }

  void operator()(std::size_t i) const noexcept {
    Lane& lane = lanes_[i];
    lane.threads[lane.calls % latest] = number_of_this_thread();
    if (notes_cores_) lane.cores[lane.calls % latest] = static_cast<std::uint8_t>(sched_getcpu());
    ++lane.calls;
    if (rendezvous_) meet(i, lane.calls);
    work(turns_);
  }

  std::size_t calls(std::size_t i) const { return lanes_[i].calls; }

  /// In which share of the latest calls, of up to 4096, the two ran on two threads.
  double two_threads(std::size_t calls = latest) const {
    return share(calls, [](const Lane& a, const Lane& b, std::size_t i) { return a.threads[i] != b.threads[i]; });
  }
  double two_cores() const {
    return share(latest, [](const Lane& a, const Lane& b, std::size_t i) { return a.cores[i] != b.cores[i]; });
  }

 private:
  static constexpr std::size_t latest = 4096;

  struct alignas(128) Lane {
    std::size_t calls = 0;
    std::array<std::uint8_t, latest> threads{};
    std::array<std::uint8_t, latest> cores{};
    alignas(128) std::atomic<std::size_t> arrived{0};
  };

  void meet(std::size_t i, std::size_t call) const noexcept {
    lanes_[i].arrived.store(call, std::memory_order_release);
    std::int64_t deadline = 0;
    for (int turn = 1; lanes_[1 - i].arrived.load(std::memory_order_acquire) < call; ++turn) {
      if (turn % 64 != 0) continue;
      if (deadline == 0) deadline = nanoseconds() + 1'000'000;
      if (nanoseconds() > deadline) return;
    }
  }

  template <class Differ>
  double share(std::size_t calls, const Differ& differ) const {
    const std::size_t last = std::min(lanes_[0].calls, lanes_[1].calls);
    const std::size_t count = std::min({last, calls, latest});
    std::size_t two = 0;
    for (std::size_t i = last - count; i < last; ++i) two += differ(lanes_[0], lanes_[1], i % latest) ? 1U : 0U;
    return count == 0 ? 0 : static_cast<double>(two) / static_cast<double>(count);
  }

  bool rendezvous_;
  bool notes_cores_;
  std::uint64_t turns_ = 0;
  mutable std::array<Lane, 2> lanes_;
};

}  // namespace benchmarks
