// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include <fanout/memory/memory_operations.hpp>

#include "support/message_of.hpp"

// Sanitizers end the program where memory is short, instead of saying so to it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif

using fanout::host_memory;
using fanout::backend::host_memory_operations;

static_assert(host_memory_operations.fresh == &host_memory_operations);
static_assert(fanout::backend::Memory{}.space == host_memory);
static_assert(fanout::backend::Memory{}.operations == &host_memory_operations);

TEST_CASE("host memory is aligned, cleared, copied and released") {
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 1000U, 1U << 20U}) {
    void* a = host_memory_operations.allocate(host_memory, bytes);
    void* b = host_memory_operations.allocate(host_memory, bytes);
    REQUIRE(a != nullptr);
    CHECK(a != b);
    CHECK(reinterpret_cast<std::uintptr_t>(a) % fanout::backend::memory_alignment == 0);
    if (bytes > 0) std::memset(a, 0x5a, bytes);
    host_memory_operations.clear(host_memory, b, bytes);
    if (bytes > 0) CHECK(static_cast<unsigned char*>(b)[bytes - 1] == 0);
    host_memory_operations.copy(host_memory, b, a, bytes);
    if (bytes > 0) CHECK(std::memcmp(a, b, bytes) == 0);
    host_memory_operations.release(host_memory, a, bytes, nullptr);
    host_memory_operations.release(host_memory, b, bytes, nullptr);
  }
}

TEST_CASE("clearing and copying zero bytes needs no address") {
  CHECK_NOTHROW(host_memory_operations.clear(host_memory, nullptr, 0));
  CHECK_NOTHROW(host_memory_operations.copy(host_memory, nullptr, nullptr, 0));
}

#if !defined(SANITIZED)
TEST_CASE("a failed allocation of host memory is reported with its bytes") {
  constexpr auto bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - 4095;
  const std::string text = fanout_test::message_of<fanout::OutOfMemory>(
      [] { static_cast<void>(host_memory_operations.allocate(host_memory, bytes)); });
  CHECK(fanout_test::says(text, "out of host memory", "9223372036854771712 bytes", "use smaller batches"));
}
#endif
