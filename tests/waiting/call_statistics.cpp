// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/waiting/call_statistics.hpp>

#include <doctest/doctest.h>

using fanout::detail::CallStatistics;

TEST_CASE("one in eight inline calls is noted") {
  CallStatistics times;
  int noted = 0;
  for (int i = 0; i < 80; ++i) noted += times.is_inline_call_noted() ? 1 : 0;
  CHECK(noted == 10);
}
