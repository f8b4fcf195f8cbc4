// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <fanout/call/shard_remains.hpp>

TEST_CASE("a shard is declared late or in time only once") {
  fanout::detail::Lateness in_time;
  CHECK_FALSE(in_time.is_late());
  in_time.end(true);
  CHECK_FALSE(in_time.look());
  CHECK_FALSE(in_time.is_late());

  fanout::detail::Lateness late;
  late.end(false);
  CHECK(late.is_late());

  fanout::detail::Lateness seen_late;
  CHECK(seen_late.look());
  seen_late.end(true);  // it had ended, but nobody knew
  CHECK(seen_late.look());
}
