// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/base/cache_line.hpp>

#include <doctest/doctest.h>

#include <fanout/worker/handoff_slot.hpp>

TEST_CASE("values that different cores write lie in different cache lines") {
  static_assert(fanout::detail::cache_line == 64 || fanout::detail::cache_line == 128 ||
                fanout::detail::cache_line == 256);
#if defined(__x86_64__)
  static_assert(fanout::detail::cache_line == 64);
#elif defined(__powerpc64__)
  static_assert(fanout::detail::cache_line == 128);
#elif defined(__s390x__)
  static_assert(fanout::detail::cache_line == 256);
#endif
  static_assert(fanout::detail::cores_apart % fanout::detail::cache_line == 0);
  static_assert(alignof(fanout::detail::HandoffSlot) == fanout::detail::cache_line);
}
