// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <fanout/parallel/call_frame.hpp>

TEST_CASE("a frame keeps the settings of its call") {
  const fanout::Plan plan{{.rows = {0, 4}, .device = 2}};
  fanout::CallFrame frame(plan, {.seed = 5, .number = 6, .rethrow_single = true});
  CHECK(frame.plan == plan);
  CHECK(frame.target.space == fanout::host_memory);
  CHECK(frame.seed == 5);
  CHECK(frame.number == 6);
  CHECK(frame.rethrow_single);
  CHECK(frame.outputs.get(0, 4, 8).buffer == frame.outputs.get(0, 4, 8).buffer);
}
