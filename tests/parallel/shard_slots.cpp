// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include <fanout/parallel/shard_slots.hpp>

using fanout::detail::ShardSlots;

namespace {

using Counted = std::shared_ptr<int>;

struct alignas(256) Wide {
  int value = 3;
};

}  // namespace

TEST_CASE("slots that are made at once are destroyed, few or many") {
  const auto counted = std::make_shared<int>(1);
  for (const std::size_t size : {0U, 1U, 8U, 9U, 30U}) {
    CAPTURE(size);
    {
      ShardSlots<Counted> slots(size);
      CHECK_FALSE(slots.are_made());
      slots.make_all();
      CHECK(slots.size() == size);
      for (auto& slot : slots) slot.fill([&] { return counted; });
      CHECK(counted.use_count() == static_cast<long>(size) + 1);
    }
    CHECK(counted.use_count() == 1);
  }
}

TEST_CASE("slots that are made one by one are destroyed where it is said that they hold something") {
  const auto counted = std::make_shared<int>(1);
  {
    ShardSlots<Counted> slots(3);
    for (std::size_t i = 3; i > 0; --i) {
      slots.make(slots[i - 1]);
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

TEST_CASE("the first slot stands where it can be found without a look, and each on lines of its own") {
  ShardSlots<int> slots(2);
  const auto address = [](const auto& x) { return reinterpret_cast<std::uintptr_t>(&x); };
  CHECK(address(slots[0]) == address(slots) + ShardSlots<int>::offset);
  CHECK(address(slots[0]) % 64 == 0);
  CHECK(sizeof(slots[0]) % 64 == 0);
  ShardSlots<Wide> wide(1);
  CHECK(address(wide[0]) == address(wide) + ShardSlots<Wide>::offset);
  CHECK(address(wide[0]) % 256 == 0);
}
