// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <type_traits>

#include <fanout/memory/scratch.hpp>

#include "memory/counting_memory.hpp"

using fanout::detail::Scratch;
using fanout_test::CountingMemory;

static_assert(!std::is_copy_constructible_v<Scratch> && !std::is_move_constructible_v<Scratch>);

TEST_CASE("scratch blocks are separate, aligned and stable, and are released with their scratch") {
  CountingMemory counting;
  {
    Scratch scratch;
    std::set<void*> seen;
    for (int i = 0; i < 20; ++i) {
      void* data = scratch.allocate(counting.memory(), 1000);
      CHECK(reinterpret_cast<std::uintptr_t>(data) % fanout::backend::memory_alignment == 0);
      std::memset(data, i, 1000);
      CHECK(seen.insert(data).second);
    }
    CHECK(counting.alive() == 20);
    int sum = 0;
    for (void* data : seen) sum += static_cast<unsigned char*>(data)[999];
    CHECK(sum == 190);
  }
  CHECK(counting.alive() == 0);
}

TEST_CASE("output buffers of a scratch are apart and go with it, unless someone holds them") {
  CountingMemory counting;
  fanout::detail::OutputBuffer* kept = nullptr;
  {
    Scratch scratch;
    std::set<fanout::detail::OutputBuffer*> seen;
    for (std::size_t i = 1; i <= 20; ++i) {
      fanout::detail::OutputBuffer& buffer = scratch.make_buffer(counting.memory(), i, 8);
      CHECK(buffer.rows() == i);
      CHECK(buffer.row_bytes() == 8);
      CHECK(seen.insert(&buffer).second);
      kept = &buffer;
    }
    kept->retain();
  }
  CHECK(counting.alive() == 1);
  CHECK(kept->rows() == 20);
  kept->release();
  CHECK(counting.alive() == 0);
}

TEST_CASE("a scratch releases its memory before its values, if all of it is in one space") {
  CountingMemory counting;
  Scratch scratch;
  int& value = scratch.retain(7);
  scratch.allocate(counting.memory(), 8);
  scratch.make_buffer(counting.memory(), 2, 8);
  SUBCASE("of which the device is done when it has computed") {
    scratch.release_memory_in(counting.memory().space);
    CHECK(counting.alive() == 0);
    CHECK(value == 7);
    CHECK_FALSE(scratch.empty());
    scratch.allocate(counting.memory(), 8);
    CHECK(counting.alive() == 1);
  }
  SUBCASE("and keeps it if there is some in another one") {
    scratch.allocate({}, 8);
    scratch.release_memory_in(counting.memory().space);
    CHECK(counting.alive() == 2);
  }
  scratch.release();
  CHECK(counting.alive() == 0);
  CHECK(scratch.empty());
}

TEST_CASE("a scratch keeps its blocks if an allocation fails") {
  CountingMemory counting;
  {
    Scratch scratch;
    scratch.allocate(counting.memory(), 8);
    scratch.make_buffer(counting.memory(), 2, 8);
    counting.exhausted = true;
    CHECK_THROWS_AS(scratch.allocate(counting.memory(), 8), fanout::OutOfMemory);
    CHECK_THROWS_AS(scratch.make_buffer(counting.memory(), 2, 8), fanout::OutOfMemory);
    CHECK(counting.alive() == 2);
  }
  CHECK(counting.alive() == 0);
}
