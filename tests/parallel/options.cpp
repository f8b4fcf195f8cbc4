// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <type_traits>

#include <fanout/parallel/options.hpp>

TEST_CASE("every option has a default") {
  const fanout::Options options;
  CHECK_FALSE(options.output.has_value());
  CHECK(options.split(5, 2) == fanout::EvenSplit{}(5, 2));
  CHECK(options.seed == 0);
  CHECK_FALSE(options.rethrow_single);
  static_assert(std::is_copy_assignable_v<fanout::Options>);
}

TEST_CASE("options are named one by one") {
  const fanout::Options options{.output = fanout::DeviceId{.kind = "host", .index = 1}, .seed = 7};
  CHECK(options.output->index == 1);
  CHECK(options.seed == 7);
}
