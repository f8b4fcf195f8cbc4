// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <fanout/memory/memory_space.hpp>

using fanout::host_memory;
using fanout::MemorySpace;

namespace {

static_assert(host_memory == MemorySpace{{"host", 0}});
static_assert(host_memory != MemorySpace{{"cuda", 0}});
static_assert(MemorySpace{{"cuda", 0}} != MemorySpace{{"cuda", 1}}, "each GPU has a memory of its own");
static_assert(MemorySpace{{"cuda", 1}} == MemorySpace{{"cuda", 1}});

}  // namespace

TEST_CASE("a memory space prints the device that it belongs to") {
  CHECK(to_string(host_memory) == "host memory");
  CHECK(to_string(MemorySpace{{"cuda", 1}}) == "the memory of cuda:1");
}
