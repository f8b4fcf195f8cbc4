// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/floating_point_modes.hpp>

#include <doctest/doctest.h>

#include <cfenv>
#include <initializer_list>

using fanout::detail::FloatingPointModes;
using fanout::detail::FloatingPointScope;

namespace {

/// 1 / 3 as the calling thread rounds it.
double third() {
  volatile double one = 1;
  volatile double three = 3;
  volatile double result = one / three;
  return result;
}
long double long_third() {
  volatile long double one = 1;
  volatile long double three = 3;
  volatile long double result = one / three;
  return result;
}

}  // namespace

TEST_CASE("a program starts in the standard modes") {
  CHECK(FloatingPointModes::current() == FloatingPointModes::standard());
  CHECK(std::fegetround() == FE_TONEAREST);
}

TEST_CASE("restored modes round as before, in all precisions") {
  const double nearest = third();
  const long double long_nearest = long_third();
  const FloatingPointModes before = FloatingPointModes::current();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const FloatingPointModes changed = FloatingPointModes::current();
    CHECK_FALSE(changed == before);
    const double rounded = third();
    const long double long_rounded = long_third();
    before.restore();
    CHECK(std::fegetround() == FE_TONEAREST);
    CHECK(third() == nearest);
    CHECK(long_third() == long_nearest);
    changed.restore();
    CHECK(std::fegetround() == mode);
    CHECK(third() == rounded);
    CHECK(long_third() == long_rounded);
    before.restore();
  }
}

TEST_CASE("a scope sets modes, and restores those from before") {
  std::fesetround(FE_UPWARD);
  {
    const FloatingPointScope scope(FloatingPointModes::standard());
    CHECK(std::fegetround() == FE_TONEAREST);
    std::fesetround(FE_DOWNWARD);
  }
  CHECK(std::fegetround() == FE_UPWARD);
  {
    const FloatingPointScope scope;
    CHECK(std::fegetround() == FE_UPWARD);
    std::fesetround(FE_TONEAREST);
  }
  CHECK(std::fegetround() == FE_UPWARD);
  std::fesetround(FE_TONEAREST);
}

TEST_CASE("exception flags are no modes, and stay") {
  std::feclearexcept(FE_ALL_EXCEPT);
  const FloatingPointModes before = FloatingPointModes::current();
  third();
  long_third();
  CHECK(std::fetestexcept(FE_INEXACT) != 0);
  CHECK(FloatingPointModes::current() == before);
  std::fesetround(FE_UPWARD);
  before.restore();
  CHECK(std::fetestexcept(FE_INEXACT) != 0);
  std::feclearexcept(FE_ALL_EXCEPT);
}

#if defined(__x86_64__)
TEST_CASE("subnormal numbers are flushed to zero while that mode is set, and traps are modes") {
  const FloatingPointModes before = FloatingPointModes::current();
  volatile double smallest = 2.2250738585072014e-308;
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
  const FloatingPointModes flushing = FloatingPointModes::current();
  before.restore();
  CHECK(smallest / 2 != 0);
  flushing.restore();
  CHECK(smallest / 2 == 0);
  before.restore();
  CHECK(smallest / 2 != 0);
}
#endif

#if defined(__GLIBC__) && defined(__x86_64__)
TEST_CASE("a trap for a flag that is set already does not go off when the mode is restored") {
  const FloatingPointModes before = FloatingPointModes::current();
  feenableexcept(FE_INEXACT);
  const FloatingPointModes trapping = FloatingPointModes::current();
  before.restore();
  CHECK(fegetexcept() == 0);
  third();
  long_third();
  trapping.restore();
  volatile long double two = 2;  // x87 would trap at its next instruction
  const bool exact = two * two == 4;
  const int traps = fegetexcept();
  before.restore();
  CHECK(exact);
  CHECK(traps == FE_INEXACT);
  std::feclearexcept(FE_ALL_EXCEPT);
}
#endif
