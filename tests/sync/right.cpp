// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/sync/right.hpp>

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <thread>
#include <vector>

#include "support/asleep.hpp"
#include "support/fork.hpp"

using fanout::detail::HeldRight;
using fanout::detail::Right;
using fanout_test::in_child;

TEST_CASE("one thread at a time has a right, whether it waited for it or found it free") {
  constexpr int threads = 8;
  constexpr int turns = 5000;
  Right right;
  int counter = 0;  // plain: the right is all that guards it
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < turns; ++i) {
        if ((i + t) % 3 == 0) {
          while (!right.try_take()) std::this_thread::yield();
          ++counter;
          right.give();
        } else {
          const HeldRight held(right);
          const int before = counter;
          if (i % 64 == 0) std::this_thread::yield();  // so that others come to wait
          counter = before + 1;
        }
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  CHECK(counter == threads * turns);
}

TEST_CASE("a right that is held cannot be taken, not by its holder either, until it is given back") {
  Right right;
  REQUIRE(right.try_take());
  CHECK_FALSE(right.try_take());
  bool other = true;
  std::thread([&] { other = right.try_take(); }).join();
  CHECK_FALSE(other);
  right.give();
  CHECK(right.try_take());
  right.give();
  {
    const HeldRight held(right);
    CHECK_FALSE(right.try_take());
  }
  CHECK(right.try_take());
}

TEST_CASE("those who wait for a right sleep, and each gets it in the end") {
  constexpr int waiters = 6;
  Right right;
  right.take();
  std::array<std::atomic<int>, waiters> numbers{};
  std::atomic<int> had{0};
  std::vector<std::thread> all;
  for (auto& number : numbers) {
    all.emplace_back([&] {
      number = fanout_test::this_thread();
      const HeldRight held(right);
      ++had;
    });
  }
  for (const auto& number : numbers) fanout_test::until_asleep(number);
  CHECK(had == 0);
  CHECK_FALSE(right.try_take());
  right.give();
  for (std::thread& thread : all) thread.join();
  CHECK(had == waiters);
  CHECK(right.try_take());
}

TEST_CASE("a right that another thread held at a fork is free in the child and still held in the parent") {
  for (const bool wanted : {false, true}) {
    CAPTURE(wanted);
    Right right;
    std::atomic<bool> taken{false};
    std::atomic<bool> end{false};
    std::thread holder([&] {
      const HeldRight held(right);
      taken = true;
      fanout_test::until(end);
    });
    fanout_test::until(taken);
    std::atomic<int> number{0};
    std::optional<std::thread> waiter;
    if (wanted) {
      waiter.emplace([&] {
        number = fanout_test::this_thread();
        const HeldRight held(right);
      });
      fanout_test::until_asleep(number);
    }
    CHECK(in_child([&] {
            if (!right.try_take()) return 1;
            if (right.try_take()) return 2;
            right.give();
            right.take();  // does not wait
            if (right.try_take()) return 3;
            right.give();
            return right.try_take() ? 0 : 4;
          }) == 0);
    CHECK_FALSE(right.try_take());
    end = true;
    holder.join();
    if (waiter) waiter->join();
    CHECK(right.try_take());
  }
}

TEST_CASE("a thread that forks with a right in hand does not have it in the child, nor gives away another's there") {
  Right right;
  std::optional<HeldRight> held(right);
  CHECK(in_child([&] {
          if (!right.try_take()) return 1;  // as another thread of the child might
          held.reset();
          return right.try_take() ? 2 : 0;
        }) == 0);
  CHECK_FALSE(right.try_take());
  held.reset();
  CHECK(right.try_take());
}

TEST_CASE("a right serves in the child of a child") {
  Right right;
  right.take();
  CHECK(in_child([&] {
          right.take();
          return in_child([&] {
            right.take();
            return right.try_take() ? 1 : 0;
          });
        }) == 0);
}
