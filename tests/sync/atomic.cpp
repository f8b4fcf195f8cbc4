// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include <fanout/sync/atomic.hpp>

using fanout::Atomic;
using fanout::MemoryOrder;

static_assert(!std::is_copy_constructible_v<Atomic<int>> && !std::is_copy_assignable_v<Atomic<int>>);
static_assert(sizeof(Atomic<std::uint32_t>) == sizeof(std::uint32_t), "the kernel sees the word itself");
constinit Atomic<const int*> starts_without_code{nullptr};

TEST_CASE("an atomic does what it is asked, and returns what was there before") {
  Atomic<std::uint32_t> word{5};
  CHECK(word.load() == 5);
  word.store(6, MemoryOrder::release);
  CHECK(word.load(MemoryOrder::acquire) == 6);
  CHECK(word.exchange(7) == 6);
  CHECK(word.fetch_add(3) == 7);
  CHECK(word.fetch_sub(2) == 10);
  CHECK(word.fetch_and(12) == 8);
  CHECK(word.load(MemoryOrder::relaxed) == 8);

  int number = 0;
  CHECK(starts_without_code.exchange(&number) == nullptr);
  CHECK(starts_without_code.load() == &number);
}

TEST_CASE("compare and exchange writes only where it finds what was expected, else tells what it found") {
  Atomic<std::uint32_t> word{1};
  std::uint32_t expected = 1;
  CHECK(word.compare_exchange_strong(expected, 2, MemoryOrder::acq_rel));
  CHECK(expected == 1);
  CHECK_FALSE(word.compare_exchange_strong(expected, 3, MemoryOrder::release));
  CHECK(expected == 2);
  CHECK_FALSE(word.compare_exchange_weak(expected = 1, 3, MemoryOrder::acquire));
  CHECK(expected == 2);
  while (!word.compare_exchange_weak(expected, 3)) CHECK(expected == 2);
  CHECK(word.load() == 3);
}

TEST_CASE("no step of several threads is lost, and what was written before is seen after") {
  constexpr int steps = 20'000;
  Atomic<int> sum{0};
  Atomic<bool> ready{false};
  std::vector<int> plain;
  std::thread other([&] {
    while (!ready.load(MemoryOrder::acquire)) std::this_thread::yield();
    CHECK(plain == std::vector{1, 2, 3});
    for (int i = 0; i < steps; ++i) sum.fetch_add(1, MemoryOrder::relaxed);
  });
  plain = {1, 2, 3};
  ready.store(true, MemoryOrder::release);
  for (int i = 0; i < steps; ++i) {
    int seen = sum.load(MemoryOrder::relaxed);
    while (!sum.compare_exchange_weak(seen, seen + 1, MemoryOrder::relaxed)) {
    }
  }
  other.join();
  CHECK(sum.load() == 2 * steps);
}
