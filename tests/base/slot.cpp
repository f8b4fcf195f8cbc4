// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fanout/base/slot.hpp>

using fanout::detail::Slot;

namespace {

/// Can be neither copied nor moved, and is aligned as nothing else.
struct alignas(128) Stays {
  explicit Stays(int number) : value(number) {}
  Stays(const Stays&) = delete;
  Stays& operator=(const Stays&) = delete;
  int value;
};

}  // namespace

TEST_CASE("an object is built in its slot, also one that cannot be moved") {
  Slot<Stays> slot;
  CHECK_FALSE(slot.filled());
  slot.fill([] { return Stays(4); });
  CHECK(slot.filled());
  ++slot.value().value;
  CHECK(std::as_const(slot).value().value == 5);
  CHECK(reinterpret_cast<std::uintptr_t>(&slot.value()) % 128 == 0);
}

TEST_CASE("a slot destroys its object once: when it is cleared, filled again, or ends") {
  const auto counted = std::make_shared<int>(0);
  {
    Slot<std::shared_ptr<int>> slot;
    slot.clear();
    slot.fill([&] { return counted; });
    slot.fill([&] { return counted; });
    CHECK(counted.use_count() == 2);
    slot.clear();
    CHECK_FALSE(slot.filled());
    CHECK(counted.use_count() == 1);
    slot.fill([&] { return counted; });
  }
  CHECK(counted.use_count() == 1);
}

TEST_CASE("a slot stays empty if its object's constructor throws") {
  const auto counted = std::make_shared<int>(0);
  Slot<std::shared_ptr<int>> slot;
  slot.fill([&] { return counted; });
  CHECK_THROWS_AS(slot.fill([]() -> std::shared_ptr<int> { throw std::runtime_error("none"); }), std::runtime_error);
  CHECK_FALSE(slot.filled());
  CHECK(counted.use_count() == 1);
}
