// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <fanout/memory/sanitized.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>  // beside our own declarations
#endif

TEST_CASE("bytes that are closed and opened again can be used, with and without a sanitizer") {
  unsigned char bytes[64] = {};
  fanout::detail::close_bytes(bytes + 8, 56);
  bytes[7] = 1;
#if defined(__SANITIZE_ADDRESS__)
  CHECK(!fanout::detail::keeps_blocks);
  CHECK(__asan_address_is_poisoned(bytes + 8) == 1);
#endif
  fanout::detail::open_bytes(bytes, 64);
  bytes[63] = 2;
  CHECK(bytes[7] + bytes[63] == 3);
}
