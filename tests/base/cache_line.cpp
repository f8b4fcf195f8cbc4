// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/base/cache_line.hpp>

#include <doctest/doctest.h>

#include <fanout/parallel/shard_slots.hpp>

TEST_CASE("what different cores write stands apart") {
  static_assert(fanout::cores_apart % 64 == 0);
  CHECK(sizeof(fanout::detail::ShardCell<char>) % fanout::cores_apart == 0);
  CHECK(alignof(fanout::detail::ShardCell<char>) == fanout::cores_apart);
}
