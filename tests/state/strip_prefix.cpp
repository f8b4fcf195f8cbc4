// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/strip_prefix.hpp>

#include <doctest/doctest.h>

TEST_CASE("a prefix is stripped once, at the front, from names that have it") {
  const auto strip = fanout::strip_prefix("module.");
  CHECK(strip("module.weight") == "weight");
  CHECK(strip("module.module.weight") == "module.weight");
  CHECK(strip("module") == "module");
  CHECK(strip("my_module.weight") == "my_module.weight");
  CHECK(strip("module.").empty());
  CHECK(strip("").empty());
  CHECK(fanout::strip_prefix("")("module.weight") == "module.weight");
}
