// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>

#include <fanout/call/shard_slot.hpp>

using fanout::detail::ShardSlot;

namespace {

/// Can be neither copied nor moved, and is aligned as nothing else.
struct alignas(128) Stays {
  explicit Stays(int number) : value(number) {}
  Stays(const Stays&) = delete;
  Stays& operator=(const Stays&) = delete;
  int value;
};

}  // namespace

TEST_CASE("a value is built in its slot") {
  ShardSlot<Stays> slot;
  slot.fill([] { return Stays(4); });
  CHECK(slot.value().value == 4);
  CHECK(reinterpret_cast<std::uintptr_t>(&slot.value()) % 128 == 0);
}

TEST_CASE("a slot that is filled again destroys the earlier value, and one that is not filled has none") {
  const auto counted = std::make_shared<int>(0);
  {
    ShardSlot<std::shared_ptr<int>> slot;
    const ShardSlot<std::shared_ptr<int>> never_filled;
    slot.fill([&] { return counted; });
    slot.fill([&] { return counted; });
    CHECK(counted.use_count() == 2);
    CHECK_THROWS_AS(slot.fill([]() -> std::shared_ptr<int> { throw std::runtime_error("no value"); }),
                    std::runtime_error);
    CHECK(counted.use_count() == 1);
    slot.fill([&] { return counted; });
  }
  CHECK(counted.use_count() == 1);
}

TEST_CASE("a void slot calls the function that fills it") {
  ShardSlot<void> slot;
  int calls = 0;
  slot.fill([&calls] { ++calls; });
  CHECK(calls == 1);
}
