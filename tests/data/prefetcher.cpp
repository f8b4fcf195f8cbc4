// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <fanout/data/prefetcher.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/message_of.hpp"
#include "support/threads_of_process.hpp"

using fanout::detail::Prefetcher;
using fanout_test::count_settled_threads;
using fanout_test::count_threads;
using fanout_test::has_threads;
using fanout_test::message_of;

namespace {

/// All values that are left, in the order in which they come.
template <class Load>
std::vector<std::size_t> all_of(Prefetcher<Load>& prefetcher) {
  std::vector<std::size_t> values;
  while (const auto value = prefetcher.next()) values.push_back(*value);
  return values;
}

std::vector<std::size_t> squares(std::size_t count) {
  std::vector<std::size_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(i * i);
  return values;
}

/// A value one of whose moves throws: the one after so many.
struct Unmovable {
  std::size_t number;
  int* moves_left;

  Unmovable(std::size_t i, int* countdown) : number(i), moves_left(countdown) {}
  Unmovable(const Unmovable& other) : number(other.number), moves_left(other.moves_left) {
    if ((*moves_left)-- == 0) throw std::bad_alloc();
  }
  Unmovable& operator=(const Unmovable&) = delete;
  ~Unmovable() = default;
};

void sleep_a_little(std::size_t i) { std::this_thread::sleep_for(std::chrono::microseconds(i * 7'919 % 400)); }

}  // namespace

TEST_CASE("prefetched values come in their order, whichever thread is first") {
  for (const std::size_t threads : {0U, 1U, 2U, 5U}) {
    for (const std::size_t ahead : {1U, 2U, 3U, 8U}) {
      for (const std::size_t count : {0U, 1U, 2U, 7U, 40U}) {
        CAPTURE(threads);
        CAPTURE(ahead);
        CAPTURE(count);
        Prefetcher prefetcher(
            [](std::size_t i) {
              sleep_a_little(i);
              return i * i;
            },
            count, threads, ahead);
        CHECK(all_of(prefetcher) == squares(count));
        CHECK(!prefetcher.next());
      }
    }
  }
}

TEST_CASE("values are made ahead by other threads, at once, as many as may be ready or in work") {
  for (const std::size_t threads : {1U, 3U}) {
    CAPTURE(threads);
    std::mutex mutex;
    std::set<std::thread::id> makers;
    std::atomic<std::size_t> begun{0};
    Prefetcher prefetcher(
        [&](std::size_t i) {
          const std::lock_guard lock(mutex);
          makers.insert(std::this_thread::get_id());
          ++begun;
          return i;
        },
        100, threads, 4);
    CHECK(begun.load() == 0);
    for (std::size_t taken = 1; taken <= 20; ++taken) {
      CHECK(prefetcher.next() == taken - 1);
      while (begun.load() < taken + 4) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      CHECK(begun.load() == taken + 4);
    }
    const std::lock_guard lock(mutex);
    CHECK(!makers.contains(std::this_thread::get_id()));
    CHECK(makers.size() <= threads);
  }
}

TEST_CASE("several threads make values at the same time, no more than there is room for") {
  std::atomic<int> inside{0};
  std::atomic<int> together{0};
  const auto load = [&](std::size_t i) {
    const int now = ++inside;
    // The first two wait for each other.
    while (i < 2 && together.load() < 2 && inside.load() < 2) std::this_thread::yield();
    int seen = together.load();
    while (seen < now && !together.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    --inside;
    return i;
  };
  const std::size_t before = count_settled_threads();
  {
    Prefetcher prefetcher(load, 50, 7, 2);
    CHECK(prefetcher.next() == std::size_t{0});
    CHECK(has_threads(before + 2));
    CHECK(all_of(prefetcher).size() == 49);
  }
  CHECK(together.load() == 2);
  CHECK(has_threads(before));
}

TEST_CASE("without threads, a value is made by the thread that asks for it, when it does") {
  const std::size_t before = count_settled_threads();
  std::vector<std::size_t> made;
  Prefetcher prefetcher(
      [&made](std::size_t i) {
        made.push_back(i);
        if (i == 1) throw std::runtime_error("no one");
        return i;
      },
      3, 0, 4);
  CHECK(made.empty());
  CHECK(prefetcher.next() == std::size_t{0});
  CHECK(made == std::vector<std::size_t>{0});
  CHECK(message_of<std::runtime_error>([&] { prefetcher.next(); }) == "no one");
  CHECK(prefetcher.next() == std::size_t{2});
  CHECK(!prefetcher.next());
  CHECK(count_threads() == before);
}

TEST_CASE("an exception comes in the place of its value, and the next value after it") {
  for (const std::size_t threads : {0U, 1U, 3U}) {
    CAPTURE(threads);
    Prefetcher prefetcher(
        [](std::size_t i) {
          sleep_a_little(i);
          if (i % 3 == 0) throw std::runtime_error("value " + std::to_string(i));
          return i;
        },
        10, threads, 4);
    for (std::size_t i = 0; i < 10; ++i) {
      CAPTURE(i);
      if (i % 3 == 0) {
        CHECK(message_of<std::runtime_error>([&] { prefetcher.next(); }) == "value " + std::to_string(i));
      } else {
        CHECK(prefetcher.next() == i);
      }
    }
    CHECK(!prefetcher.next());
  }
}

TEST_CASE("a prefetcher that is destroyed early waits for what is in work, drops it, and leaves no thread") {
  const std::size_t before = count_settled_threads();
  for (std::size_t taken = 0; taken < 6; ++taken) {
    CAPTURE(taken);
    const auto counted = std::make_shared<int>(0);
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    {
      Prefetcher prefetcher(
          [&, counted](std::size_t) {
            ++begun;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            ++ended;
            return counted;
          },
          100, 3, 4);
      for (std::size_t i = 0; i < taken; ++i) CHECK(*prefetcher.next() == counted);
    }
    CHECK(begun.load() == ended.load());
    CHECK(begun.load() <= static_cast<int>(taken == 0 ? 0 : taken + 4));
    CHECK(counted.use_count() == 1);
    CHECK(has_threads(before));
  }
}

TEST_CASE("a value lives no longer in the prefetcher than until it is taken") {
  Prefetcher prefetcher([](std::size_t i) { return std::make_shared<std::size_t>(i); }, 20, 2, 3);
  for (std::size_t i = 0; i < 20; ++i) {
    const auto value = *prefetcher.next();
    CHECK(*value == i);
    CHECK(value.use_count() == 1);
  }
}

TEST_CASE("values that can only be moved are prefetched") {
  Prefetcher prefetcher([](std::size_t i) { return std::make_unique<std::size_t>(i); }, 5, 2, 2);
  for (std::size_t i = 0; i < 5; ++i) CHECK(**prefetcher.next() == i);
}

TEST_CASE("a value whose move throws is neither lost nor given out twice") {
  for (const std::size_t threads : {0U, 1U}) {
    for (int failing = 0; failing < 4; ++failing) {
      CAPTURE(threads);
      CAPTURE(failing);
      int moves_left = failing;
      Prefetcher prefetcher([&moves_left](std::size_t i) { return Unmovable(i, &moves_left); }, 4, threads, 1);
      std::vector<std::size_t> values;
      int errors = 0;
      for (bool over = false; !over;) {
        try {
          const auto value = prefetcher.next();
          over = !value;
          if (value) values.push_back(value->number);
        } catch (const std::bad_alloc&) {
          ++errors;
        }
        CHECK(prefetcher.taken() == values.size());
      }
      CHECK(values == std::vector<std::size_t>{0, 1, 2, 3});
      CHECK(errors == 1);
    }
  }
}
