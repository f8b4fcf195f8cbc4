// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <fanout/memory/host_allocator.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>

using fanout::backend::HostAllocator;

TEST_CASE("a host allocator allocates ordinary memory, unless it is told a function") {
  const auto ordinary = HostAllocator{}(100);
  CHECK(ordinary.bytes() == 100);
  CHECK(ordinary.data() != nullptr);
  CHECK(ordinary.space() == fanout::host_memory);
  CHECK(ordinary.memory().operations == &fanout::backend::host_memory_operations);
  CHECK(HostAllocator{}(0).data() == nullptr);

  static std::size_t asked_for = 0;
  const HostAllocator own{[](std::size_t bytes) {
    asked_for = bytes;
    return HostAllocator{}(bytes);
  }};
  CHECK(own(100).bytes() == 100);
  CHECK(asked_for == 100);
}
