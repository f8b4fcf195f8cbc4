// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/fork_safe_mutex.hpp>

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <thread>
#include <vector>

#include "support/asleep.hpp"
#include "support/fork.hpp"

using fanout::detail::ForkSafeLock;
using fanout::detail::ForkSafeMutex;
using fanout_test::in_child;

TEST_CASE("one thread at a time holds the mutex, whether it waited for it or found it free") {
  constexpr int threads = 8;
  constexpr int turns = 5000;
  ForkSafeMutex mutex;
  int counter = 0;  // plain: the right is all that guards it
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < turns; ++i) {
        if ((i + t) % 3 == 0) {
          while (!mutex.try_lock()) std::this_thread::yield();
          ++counter;
          mutex.unlock();
        } else {
          const ForkSafeLock held(mutex);
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

TEST_CASE("a held mutex cannot be locked, not even by its holder, until it is unlocked") {
  ForkSafeMutex mutex;
  REQUIRE(mutex.try_lock());
  CHECK_FALSE(mutex.try_lock());
  bool other = true;
  std::thread([&] { other = mutex.try_lock(); }).join();
  CHECK_FALSE(other);
  mutex.unlock();
  CHECK(mutex.try_lock());
  mutex.unlock();
  {
    const ForkSafeLock held(mutex);
    CHECK_FALSE(mutex.try_lock());
  }
  CHECK(mutex.try_lock());
}

TEST_CASE("threads that wait for the mutex sleep, and each gets it in the end") {
  constexpr int waiters = 6;
  ForkSafeMutex mutex;
  mutex.lock();
  std::array<std::atomic<int>, waiters> numbers{};
  std::atomic<int> had{0};
  std::vector<std::thread> all;
  for (auto& number : numbers) {
    all.emplace_back([&] {
      number = fanout_test::this_thread();
      const ForkSafeLock held(mutex);
      ++had;
    });
  }
  for (const auto& number : numbers) fanout_test::until_asleep(number);
  CHECK(had == 0);
  CHECK_FALSE(mutex.try_lock());
  mutex.unlock();
  for (std::thread& thread : all) thread.join();
  CHECK(had == waiters);
  CHECK(mutex.try_lock());
}

TEST_CASE("a mutex that another thread held at a fork is free in the child and still held in the parent") {
  for (const bool wanted : {false, true}) {
    CAPTURE(wanted);
    ForkSafeMutex mutex;
    std::atomic<bool> taken{false};
    std::atomic<bool> end{false};
    std::thread holder([&] {
      const ForkSafeLock held(mutex);
      taken = true;
      fanout_test::until(end);
    });
    fanout_test::until(taken);
    std::atomic<int> number{0};
    std::optional<std::thread> waiter;
    if (wanted) {
      waiter.emplace([&] {
        number = fanout_test::this_thread();
        const ForkSafeLock held(mutex);
      });
      fanout_test::until_asleep(number);
    }
    CHECK(in_child([&] {
            if (!mutex.try_lock()) return 1;
            if (mutex.try_lock()) return 2;
            mutex.unlock();
            mutex.lock();  // does not wait
            if (mutex.try_lock()) return 3;
            mutex.unlock();
            return mutex.try_lock() ? 0 : 4;
          }) == 0);
    CHECK_FALSE(mutex.try_lock());
    end = true;
    holder.join();
    if (waiter) waiter->join();
    CHECK(mutex.try_lock());
  }
}

TEST_CASE("a thread that forks while it holds the mutex does not hold it in the child, nor unlocks another's there") {
  ForkSafeMutex mutex;
  std::optional<ForkSafeLock> held(mutex);
  CHECK(in_child([&] {
          if (!mutex.try_lock()) return 1;  // as another thread of the child might
          held.reset();
          return mutex.try_lock() ? 2 : 0;
        }) == 0);
  CHECK_FALSE(mutex.try_lock());
  held.reset();
  CHECK(mutex.try_lock());
}

TEST_CASE("a mutex works in the child of a child") {
  ForkSafeMutex mutex;
  mutex.lock();
  CHECK(in_child([&] {
          mutex.lock();
          return in_child([&] {
            mutex.lock();
            return mutex.try_lock() ? 1 : 0;
          });
        }) == 0);
}
