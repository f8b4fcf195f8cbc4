// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/fork_epoch.hpp>

#include <doctest/doctest.h>

#include <thread>

#include "support/fork.hpp"

using fanout::detail::fork_epoch;
using fanout_test::in_child;

TEST_CASE("all threads of a process see one fork epoch") {
  const std::uint32_t mine = fork_epoch();
  std::uint32_t other = mine + 1;
  std::thread([&other] { other = fork_epoch(); }).join();
  CHECK(other == mine);
  CHECK(fork_epoch() == mine);
}

TEST_CASE("each fork moves the child's epoch on and leaves the parent's") {
  const std::uint32_t before = fork_epoch();
  CHECK(in_child([before] {
          if (fork_epoch() != before + 1) return 1;
          const int grandchild = in_child([before] { return fork_epoch() == before + 2 ? 0 : 2; });
          return fork_epoch() == before + 1 ? grandchild : 3;
        }) == 0);
  CHECK(fork_epoch() == before);
}
