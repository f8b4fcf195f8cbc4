// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/byte_order.hpp>

#include <doctest/doctest.h>

#include <bit>

#include "support/message_of.hpp"

TEST_CASE("files are refused on a big-endian machine, and on no other") {
  CHECK_NOTHROW(fanout::detail::check_byte_order(std::endian::little));
  CHECK(fanout_test::says(
      fanout_test::message_of<fanout::Error>([] { fanout::detail::check_byte_order(std::endian::big); }),
      "little-endian"));
}
