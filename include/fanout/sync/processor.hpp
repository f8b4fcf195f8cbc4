// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/requirements.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A processor whose counter is unknown here.
struct WithoutCounter {
  static constexpr bool has_counter = false;
  static std::int64_t ticks() noexcept { return 0; }
  static std::uint64_t frequency() noexcept { return 0; }
};

// What C++ does not know of a processor:
// - pause(): one turn of a spin loop, which tells the core that the thread only waits;
// - ticks(): the value of its own counter; frequency(): the counter's ticks in a second, or 0 if that has to be
//   measured.
#if defined(__x86_64__) || defined(__i386__)
struct Processor {
  static constexpr bool has_counter = true;
  static void pause() noexcept { __builtin_ia32_pause(); }
  static std::int64_t ticks() noexcept { return static_cast<std::int64_t>(__builtin_ia32_rdtsc()); }
  static std::uint64_t frequency() noexcept { return 0; }
};
#elif defined(__aarch64__)
struct Processor {
  static constexpr bool has_counter = true;
  static void pause() noexcept { asm volatile("isb" ::: "memory"); }
  static std::int64_t ticks() noexcept {
    std::int64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
  static std::uint64_t frequency() noexcept {
    std::uint64_t ticks;
    asm("mrs %0, cntfrq_el0" : "=r"(ticks));
    return ticks;
  }
};
#elif defined(__powerpc64__)
struct Processor : WithoutCounter {
  static void pause() noexcept { asm volatile("or 27,27,27" ::: "memory"); }  // "yield" in the Power ISA
};
#elif defined(__riscv)
struct Processor : WithoutCounter {
  /// "pause" of Zihintpause. Cores without it run it as a fence of nothing.
  static void pause() noexcept { asm volatile(".4byte 0x0100000f" ::: "memory"); }
};
#else
struct Processor : WithoutCounter {
  static void pause() noexcept {}
};
#endif

}}}  // namespace fanout::v0::detail
