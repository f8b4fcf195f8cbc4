// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/base/checks.hpp>

#include <doctest/doctest.h>

TEST_CASE("checks are on in builds that look for mistakes") {
  static_assert(FANOUT_CHECKS == 0 || FANOUT_CHECKS == 1);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(_GLIBCXX_ASSERTIONS)
  CHECK(FANOUT_CHECKS == 1);
#endif
}
