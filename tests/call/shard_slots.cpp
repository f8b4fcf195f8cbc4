// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include <fanout/call/shard_slots.hpp>

using fanout::detail::ShardSlots;

namespace {

using SharedInt = std::shared_ptr<int>;

struct alignas(256) Wide {
  int value = 3;
};

}  // namespace

TEST_CASE("slots that are made at once are destroyed, few or many") {
  const auto counted = std::make_shared<int>(1);
  for (const std::size_t size : {0U, 1U, 8U, 9U, 30U}) {
    CAPTURE(size);
    {
      ShardSlots<SharedInt> slots(size);
      CHECK_FALSE(slots.are_made());
      slots.make_all();
      CHECK(slots.size() == size);
      for (std::size_t i = 0; i < size; ++i) slots[i].fill([&] { return counted; });
      CHECK(counted.use_count() == static_cast<long>(size) + 1);
    }
    CHECK(counted.use_count() == 1);
  }
}

TEST_CASE("slots made one by one are destroyed if all are declared made") {
  const auto counted = std::make_shared<int>(1);
  {
    ShardSlots<SharedInt> slots(3);
    for (std::size_t i = 3; i > 0; --i) {
      slots.cells()[i - 1].make();
      slots[i - 1].fill([&] { return counted; });
    }
    slots.all_are_made(true);
    CHECK(counted.use_count() == 4);
  }
  CHECK(counted.use_count() == 1);
  {
    ShardSlots<int> never_made(9);
    CHECK(never_made.size() == 9);
  }
}

TEST_CASE("each cell stands in lines of its own, aligned as its value is") {
  ShardSlots<int> slots(2);
  const auto address = [](const auto& x) { return reinterpret_cast<std::uintptr_t>(&x); };
  CHECK(address(slots.cells()[0]) % fanout::detail::cores_apart == 0);
  CHECK(sizeof(slots.cells()[0]) % fanout::detail::cores_apart == 0);
  ShardSlots<Wide> wide(10);
  wide.make_all();
  for (std::size_t i = 0; i < 10; ++i) {
    wide[i].fill([] { return Wide{}; });
    CHECK(address(wide[i].value()) % 256 == 0);
  }
}

TEST_CASE("a shard's end can be read before and after its slot is made, separately for each shard") {
  for (const std::size_t size : {2U, 9U}) {
    ShardSlots<int> slots(size);
    CHECK_FALSE(slots.cells()[1].ended().load());
    slots.cells()[1].make();
    CHECK_FALSE(slots.cells()[1].ended().load());
    slots.cells()[1].ended().store(true);
    CHECK(slots.cells()[1].ended().load());
    CHECK_FALSE(slots.cells()[0].ended().load());
  }
}
