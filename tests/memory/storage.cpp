// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fanout/memory/storage.hpp>

#include "memory/counting_memory.hpp"

using fanout::backend::Memory;
using fanout::detail::Storage;
using fanout_test::CountingMemory;

namespace {

static_assert(std::is_nothrow_move_constructible_v<Storage>);
static_assert(std::is_nothrow_move_assignable_v<Storage>);
static_assert(std::is_nothrow_default_constructible_v<Storage>);

void fill(Storage& storage, int byte) { std::memset(storage.data(), byte, storage.bytes()); }
int last_byte(const Storage& storage) { return static_cast<const unsigned char*>(storage.data())[storage.bytes() - 1]; }

}  // namespace

TEST_CASE("a storage of nothing needs no memory") {
  CountingMemory counting;
  {
    const Storage none;
    CHECK(none.data() == nullptr);
    CHECK(none.bytes() == 0);
    CHECK(none.space() == fanout::host_memory);

    const Storage empty(counting.memory(), 0);
    const Storage copy = empty;
    CHECK(copy.data() == nullptr);
    CHECK(copy.space() == CountingMemory::space);
  }
  CHECK(counting.allocated == 0);
  CHECK(counting.released == 0);
}

TEST_CASE("every allocation of a storage is matched by one release") {
  CountingMemory counting;
  {
    Storage a(counting.memory(), 100);
    fill(a, 1);
    Storage b = a;
    CHECK(counting.allocated == 2);
    CHECK(counting.copied == 1);
    CHECK(b.data() != a.data());
    CHECK(last_byte(b) == 1);
    Storage c = std::move(a);
    CHECK(counting.allocated == 2);
    Storage d(counting.memory(), 7);
    d = std::move(c);
    CHECK(counting.released == 1);
    d = b;
    a = d;  // a was moved from
    CHECK(last_byte(a) == 1);
    a = Storage();
    std::swap(b, d);
    CHECK(counting.alive() == 2);
  }
  CHECK(counting.alive() == 0);
  CHECK(counting.allocated == counting.released);
}

TEST_CASE("a storage that was moved from holds nothing") {
  CountingMemory counting;
  Storage a(counting.memory(), 100);
  void* const data = a.data();
  const Storage b = std::move(a);
  CHECK(b.data() == data);
  CHECK(a.data() == nullptr);  // NOLINT(bugprone-use-after-move): this is what is tested
  CHECK(a.bytes() == 0);
  const Storage copy = a;
  CHECK(copy.data() == nullptr);
}

TEST_CASE("assigning a storage of the same size keeps the memory, and another size replaces it") {
  CountingMemory counting;
  Storage a(counting.memory(), 100);
  Storage same(counting.memory(), 100);
  fill(same, 2);
  void* const data = a.data();
  a = same;
  CHECK(a.data() == data);
  CHECK(counting.allocated == 2);
  CHECK(last_byte(a) == 2);

  Storage more(counting.memory(), 200);
  fill(more, 3);
  a = more;
  CHECK(a.bytes() == 200);
  CHECK(last_byte(a) == 3);
  CHECK(counting.alive() == 3);
}

TEST_CASE("assigning a storage of the same size in another memory moves to that memory") {
  CountingMemory counting;
  Storage a(Memory{}, 100);
  Storage other(counting.memory(), 100);
  fill(other, 4);
  a = other;
  CHECK(a.space() == CountingMemory::space);
  CHECK(last_byte(a) == 4);
  CHECK(counting.alive() == 2);
}

TEST_CASE("a storage can be assigned to itself") {
  CountingMemory counting;
  Storage a(counting.memory(), 100);
  fill(a, 5);
  Storage& same = a;
  a = same;
  CHECK(last_byte(a) == 5);
  a = std::move(same);
  REQUIRE(a.bytes() == 100);
  CHECK(last_byte(a) == 5);
  CHECK(counting.allocated == 1);
}

TEST_CASE("adopted bytes are released once with their owner, and their copies use the fresh operations") {
  CountingMemory counting;
  int owner = 0;
  unsigned char bytes[100] = {};
  bytes[99] = 6;
  {
    Storage adopted(counting.adopting(), bytes, sizeof(bytes), &owner);
    CHECK(adopted.data() == bytes);
    CHECK(adopted.owner() == &owner);
    {
      const Storage copy = adopted;
      CHECK(copy.data() != bytes);
      CHECK(copy.owner() == nullptr);
      CHECK(last_byte(copy) == 6);
      CHECK(copy.memory().operations == counting.memory().operations);
      CHECK(counting.allocated == 1);
    }
    CHECK(counting.released == 1);
    const Storage moved = std::move(adopted);
    CHECK(counting.adopted_released == 0);
  }
  CHECK(counting.adopted_released == 1);
  CHECK(counting.last_owner == &owner);
  CHECK(counting.alive() == 0);
}

TEST_CASE("an owner without bytes is released too") {
  CountingMemory counting;
  int owner = 0;
  { const Storage adopted(counting.adopting(), nullptr, 0, &owner); }
  CHECK(counting.adopted_released == 1);
}

TEST_CASE("new bytes of adopting operations use the fresh operations") {
  CountingMemory counting;
  { const Storage made(counting.adopting(), 10); }
  CHECK(counting.released == 1);
  CHECK(counting.adopted_released == 0);
}

TEST_CASE("a storage clears its bytes") {
  CountingMemory counting;
  Storage a(counting.memory(), 10);
  fill(a, 7);
  a.clear();
  CHECK(last_byte(a) == 0);
  CHECK(counting.cleared == 1);
}

TEST_CASE("a failed allocation leaves an assigned storage unchanged") {
  CountingMemory counting;
  Storage a(counting.memory(), 10);
  fill(a, 8);
  const Storage b(counting.memory(), 20);
  counting.exhausted = true;
  CHECK_THROWS_AS(a = b, fanout::OutOfMemory);
  CHECK(a.bytes() == 10);
  CHECK(last_byte(a) == 8);
  CHECK_THROWS_AS(Storage(counting.memory(), 1), fanout::OutOfMemory);
}
