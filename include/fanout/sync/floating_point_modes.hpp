// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>
#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(__powerpc64__) && !defined(__s390x__) && \
    !defined(__riscv_flen)
#include <cfenv>
#endif

namespace fanout { inline namespace v0 { namespace detail {

// The registers of a processor that hold a thread's floating-point modes, and perhaps exception flags:
//
// - standard() are the modes in which a program starts;
// - read() reads them. Its asm is volatile: any code between two reads may change the registers;
// - bits() are the modes alone;
// - write() sets the modes and keeps the exception flags, but for flags that would trap at once. The clobber "memory"
//   keeps computations before and after it in their places.
#if defined(__x86_64__)
struct FloatingPointRegisters {
  std::uint32_t word;  // the lower half of MXCSR, since there is no mode in the upper one; above it, x87's control word

  static constexpr FloatingPointRegisters standard() noexcept { return {.word = 0x037F'1F80}; }
  void read() noexcept {
    struct {
      std::uint16_t mxcsr, x87;
    } halves;
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(halves), "=m"(halves.x87));
    word = __builtin_bit_cast(std::uint32_t, halves);
  }
  constexpr std::uint32_t bits() const noexcept { return word & 0xFFFF'FFC0; }
  [[gnu::cold, gnu::noinline]] void write() const noexcept {
    std::uint32_t mxcsr;
    asm volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr = (mxcsr & 0xFFFF'003F) | (word & 0xFFC0);
    asm volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
    const auto control = static_cast<std::uint16_t>(word >> 16);
    std::uint16_t flags;
    asm volatile("fnstsw %0" : "=m"(flags));
    if ((flags & ~control & 0x3F) != 0) asm volatile("fnclex" : : : "memory");
    asm volatile("fldcw %0" : : "m"(control) : "memory");
  }
};
#elif defined(__aarch64__)
struct FloatingPointRegisters {
  std::uint64_t fpcr;  // the flags have a register of their own

  static constexpr FloatingPointRegisters standard() noexcept { return {.fpcr = 0}; }
  void read() noexcept { asm volatile("mrs %0, fpcr" : "=r"(fpcr)); }
  constexpr std::uint64_t bits() const noexcept { return fpcr; }
  void write() const noexcept { asm volatile("msr fpcr, %0" : : "r"(fpcr) : "memory"); }
};
#elif defined(__powerpc64__)
struct FloatingPointRegisters {
  double fpscr;  // the instructions move it as a double

  static constexpr FloatingPointRegisters standard() noexcept { return {.fpscr = 0}; }
  void read() noexcept { asm volatile("mffs %0" : "=d"(fpscr)); }
  constexpr std::uint64_t bits() const noexcept { return __builtin_bit_cast(std::uint64_t, fpscr) & 0xFF; }
  void write() const noexcept {
    constexpr std::uint64_t traps = 0xF8;
    FloatingPointRegisters now;
    now.read();
    const std::uint64_t flags = (bits() & traps) != 0 ? 0 : __builtin_bit_cast(std::uint64_t, now.fpscr) & ~0xFFULL;
    asm volatile("mtfsf 255, %0" : : "d"(__builtin_bit_cast(double, flags | bits())) : "memory");
  }
};
#elif defined(__s390x__)
struct FloatingPointRegisters {
  std::uint32_t fpc;

  static constexpr FloatingPointRegisters standard() noexcept { return {.fpc = 0}; }
  void read() noexcept { asm volatile("efpc %0, 0" : "=d"(fpc)); }
  constexpr std::uint32_t bits() const noexcept { return fpc & 0xF800'0077; }
  void write() const noexcept {
    FloatingPointRegisters now;
    now.read();
    asm volatile("sfpc %0, 0" : : "d"((now.fpc & ~0xF800'0077) | bits()) : "memory");
  }
};
#elif defined(__riscv_flen)
struct FloatingPointRegisters {
  std::uint64_t frm;

  static constexpr FloatingPointRegisters standard() noexcept { return {.frm = 0}; }
  void read() noexcept { asm volatile("frrm %0" : "=r"(frm)); }
  constexpr std::uint64_t bits() const noexcept { return frm; }
  void write() const noexcept { asm volatile("fsrm %0" : : "r"(frm) : "memory"); }
};
#else
struct FloatingPointRegisters {
  int rounding;  // all that standard C++ can set

  static constexpr FloatingPointRegisters standard() noexcept { return {.rounding = FE_TONEAREST}; }
  void read() noexcept { rounding = std::fegetround(); }
  constexpr int bits() const noexcept { return rounding; }
  void write() const noexcept { static_cast<void>(std::fesetround(rounding)); }
};
#endif

/// The modes of a thread's floating-point environment: the rounding direction, whether subnormal numbers are flushed to
/// zero, the precision of x87, and which exceptions trap. Exception flags are not among them.
class FloatingPointModes {
 public:
  /// The modes of the calling thread.
  static FloatingPointModes current() noexcept {
    FloatingPointModes modes;
    modes.registers_.read();
    return modes;
  }

  /// The modes in which a program starts.
  static constexpr FloatingPointModes standard() noexcept {
    return FloatingPointModes(FloatingPointRegisters::standard());
  }

  /// Sets the modes of the calling thread. Only reads and compares them if the thread has these modes already.
  void restore() const noexcept {
    if (!(current() == *this)) [[unlikely]]
      registers_.write();
  }

  friend constexpr bool operator==(const FloatingPointModes& a, const FloatingPointModes& b) noexcept {
    return a.registers_.bits() == b.registers_.bits();
  }

 private:
  FloatingPointModes() noexcept {}  // NOLINT(modernize-use-equals-default): current() reads the registers next
  constexpr explicit FloatingPointModes(const FloatingPointRegisters& registers) noexcept : registers_(registers) {}

  FloatingPointRegisters registers_;
};

/// Restores the modes of the calling thread at the end of a scope.
class FloatingPointScope {
 public:
  FloatingPointScope() noexcept = default;
  /// Sets these modes until then.
  explicit FloatingPointScope(const FloatingPointModes& modes) noexcept { modes.restore(); }
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;
  ~FloatingPointScope() { before_.restore(); }

 private:
  const FloatingPointModes before_ = FloatingPointModes::current();
};

}}}  // namespace fanout::v0::detail
