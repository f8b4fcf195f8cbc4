// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Shared;

namespace {

/// Counts how many of it there are.
struct Counted {
  explicit Counted(int number) : value(number) { ++alive; }
  Counted(const Counted& other) : value(other.value) { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }
  int value;
  static inline std::atomic<int> alive{0};
};

struct Derived : Counted {
  using Counted::Counted;
};

/// Has a lock of its own, as far as this library can tell.
struct Log {
  void add() {}
};

}  // namespace

template <>
inline constexpr bool fanout::is_thread_safe<Log> = true;

static_assert(std::is_same_v<decltype(*Shared<int>()), const int&>, "it is only read");
static_assert(std::is_same_v<decltype(Shared<std::atomic<int>>()->load()), int>);
static_assert(std::is_same_v<decltype(*Shared<std::atomic<int>>()), std::atomic<int>&>, "unless T is made for threads");
static_assert(std::is_same_v<decltype(*Shared<Log>()), Log&>, "or somebody says so");
static_assert(std::is_same_v<decltype(Shared(std::make_shared<int>(1))), Shared<int>>);
static_assert(std::is_same_v<decltype(Shared(std::make_shared<const int>(1))), Shared<int>>);
static_assert(std::is_same_v<decltype(Shared(std::string())), Shared<std::string>>);
static_assert(!std::is_constructible_v<Shared<std::atomic<int>>, std::shared_ptr<const std::atomic<int>>>,
              "what is const is not written");
static_assert(!std::is_constructible_v<Shared<int>, std::shared_ptr<std::string>>);

TEST_CASE("copies of a Shared refer to one object, which the last copy destroys") {
  {
    Shared<Counted> one = Counted(3);
    CHECK(Counted::alive == 1);
    Shared<Counted> two = one;
    CHECK(&*one == &*two);
    CHECK(two->value == 3);
    one = Counted(4);
    CHECK(Counted::alive == 2);
    CHECK(two->value == 3);
    two = std::move(one);
    CHECK(Counted::alive == 1);
    CHECK(two->value == 4);
    CHECK_FALSE(one);
    CHECK(one.get() == nullptr);
    two = *&two;
    CHECK(two.get()->value == 4);
  }
  CHECK(Counted::alive == 0);
}

TEST_CASE("a Shared is made from a shared_ptr, also of a derived class or null") {
  {
    auto pointer = std::make_shared<Derived>(5);
    const Shared<Counted> shared = pointer;
    CHECK(&*shared == pointer.get());
    pointer.reset();
    CHECK(shared->value == 5);
    CHECK_FALSE(Shared<Counted>(std::shared_ptr<Counted>()));
  }
  CHECK(Counted::alive == 0);
}

TEST_CASE("an object that cannot be moved is made in place") {
  const auto count = Shared<std::atomic<int>>::make(3);
  const auto same = count;
  *same += 1;
  CHECK(*count == 4);
}

TEST_CASE("many threads may copy and release one Shared") {
  {
    const Shared<Counted> shared = Counted(1);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([mine = shared] {
        for (int i = 0; i < 1000; ++i) static_cast<void>(Shared<Counted>(mine));
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(Counted::alive == 1);
  }
  CHECK(Counted::alive == 0);
}

TEST_CASE("the original and all replicas have one object, until an update gives them another") {
  struct Model {
    Shared<Counted> table = Counted(10);
    Shared<std::atomic<int>> calls = Shared<std::atomic<int>>::make(0);
    int mine = 0;
    int forward(std::span<const int>) {
      ++*calls;
      return table->value + ++mine;
    }
  };
  {
    ParallelModel model{Model{}, host_devices(3)};
    const std::vector x{1, 2, 3};
    CHECK(model(x)[2] == 11);
    CHECK(Counted::alive == 1);
    CHECK(&*model.replica(2).model().table == &*model.model().table);
    CHECK(*model.model().calls == 3);
    model.update([](Model& original) { original.table = Counted(20); });
    CHECK(model(x)[0] == 21);
    CHECK(model(std::vector{1})[0] == 22);
    CHECK(Counted::alive == 1);
  }
  CHECK(Counted::alive == 0);
}
