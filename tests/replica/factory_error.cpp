// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <exception>
#include <stdexcept>
#include <string>

#include <fanout/replica/factory_error.hpp>

TEST_CASE("a factory's error names devices and no rows") {
  const auto full = std::make_exception_ptr(std::length_error("full"));
  const fanout::FactoryError error(
      {{.shard = 1, .device = {.kind = "host", .index = 4}, .rows = {}, .exception = full}}, 3);
  CHECK(error.what() == std::string("the factory failed on 1 of 3 replicas\n"
                                    "  Caught std::length_error in replica 1 on device host:4: full"));
  CHECK(error.get_if<std::length_error>() != nullptr);
}
