// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>

#include <fanout/memory/size_class.hpp>

using fanout::detail::class_bytes;
using fanout::detail::size_class;
using fanout::detail::smallest_block;

static_assert(size_class(0).bytes == 64 && size_class(1).index == 0 && size_class(64).index == 0);
static_assert(size_class(65).bytes == 128 && size_class(257).bytes == 320 && size_class(512).bytes == 512);
static_assert(size_class(513).bytes == 640 && size_class(1U << 20U).bytes == 1U << 20U);
static_assert(size_class(std::size_t{1} << 63U).bytes == std::size_t{1} << 63U);

TEST_CASE("size classes follow each other without a gap, and waste less than a quarter") {
  std::size_t before = 0;
  for (std::size_t index = 0; index < 200; ++index) {
    const std::size_t bytes = class_bytes(index);
    REQUIRE(bytes > before);
    CHECK(bytes % smallest_block == 0);
    CHECK(size_class(before + 1).index == index);
    CHECK(size_class(before + 1).bytes == bytes);
    CHECK(size_class(bytes).index == index);
    CHECK(size_class(bytes).bytes == bytes);
    if (before >= 256) CHECK(bytes - (before + 1) < (before + 1) / 4);
    before = bytes;
  }
}
