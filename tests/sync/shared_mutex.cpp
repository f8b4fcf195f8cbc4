// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/shared_mutex.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "support/asleep.hpp"
#include "support/fork.hpp"
#include "support/skip.hpp"

using fanout::detail::SharedMutex;
using fanout_test::in_child;

namespace {

/// A thread that holds the exclusive lock until it is told to release it; made when that thread waits for it.
class Closer {
 public:
  explicit Closer(SharedMutex& mutex)
      : thread_([this, &mutex] {
          number_ = fanout_test::this_thread();
          mutex.lock();
          alone = true;
          fanout_test::until(go_on_);
          alone = false;
          mutex.unlock();
        }) {
    fanout_test::until_asleep(number_);
  }
  void open() {
    go_on_ = true;
    thread_.join();
  }

  std::atomic<bool> alone{false};

 private:
  std::atomic<int> number_{0};
  std::atomic<bool> go_on_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("many threads hold shared locks at once") {
  constexpr int threads = 5;
  SharedMutex mutex;
  std::atomic<int> inside{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      mutex.lock_shared();
      ++inside;
      while (inside != threads) std::this_thread::yield();  // ends only if all of them are in
      mutex.unlock_shared();
    });
  }
  for (std::thread& thread : all) thread.join();
  mutex.lock();  // returns: all have left
  mutex.unlock();
}

TEST_CASE("the holder of the exclusive lock is alone, however many threads lock") {
  constexpr int turns = 2000;
  SharedMutex mutex;
  int a = 0;  // plain: only the mutex guards them
  int b = 0;
  std::atomic<int> torn{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < turns; ++i) {
        mutex.lock_shared();
        if (a != b) ++torn;
        if (i % 32 == 0) std::this_thread::yield();
        mutex.unlock_shared();
      }
    });
  }
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < turns; ++i) {
        mutex.lock();
        ++a;
        if (i % 16 == 0) std::this_thread::yield();
        ++b;
        mutex.unlock();
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  CHECK(torn == 0);
  CHECK(a == 3 * turns);
  CHECK(b == 3 * turns);
}

TEST_CASE("shared locks are counted, nested ones too, also over a fork") {
  SharedMutex mutex;
  CHECK(mutex.lock_shared() == 0);
  CHECK(mutex.lock_shared_nested() == 1);
  mutex.unlock_shared();
  mutex.unlock_shared();
  mutex.lock();
  mutex.unlock();
  CHECK(mutex.lock_shared() == 2);
  if (!fanout_test::can_fork) return fanout_test::skip(fanout_test::cannot_fork);
  CHECK(in_child([&] { return static_cast<int>(mutex.lock_shared()); }) == 3);
  mutex.unlock_shared();
}

TEST_CASE("a nested shared lock and an exclusive lock are not held at once") {
  constexpr int turns = 2000;
  SharedMutex mutex;
  int a = 0;  // plain: only the mutex guards them
  int b = 0;
  std::atomic<int> torn{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < turns; ++i) {
        mutex.lock_shared_nested();
        if (a != b) ++torn;
        mutex.unlock_shared();
      }
    });
  }
  all.emplace_back([&] {
    for (int i = 0; i < turns; ++i) {
      mutex.lock();
      ++a;
      ++b;
      mutex.unlock();
    }
  });
  for (std::thread& thread : all) thread.join();
  CHECK(torn == 0);
  CHECK(a == turns);
}

TEST_CASE("an exclusive lock waits for shared holders and lets no new ones in") {
  SharedMutex mutex;
  mutex.lock_shared();
  mutex.lock_shared();
  Closer closer(mutex);
  CHECK_FALSE(closer.alone);

  std::array<std::atomic<int>, 3> numbers{};
  std::atomic<int> entered{0};
  std::atomic<bool> together{false};
  std::vector<std::thread> late;
  for (auto& number : numbers) {
    late.emplace_back([&] {
      number = fanout_test::this_thread();
      mutex.lock_shared();
      if (closer.alone) together = true;
      ++entered;
      mutex.unlock_shared();
    });
  }
  for (const auto& number : numbers) fanout_test::until_asleep(number);
  CHECK(entered == 0);

  mutex.unlock_shared();
  CHECK_FALSE(closer.alone);  // one is inside still
  CHECK(entered == 0);
  mutex.unlock_shared();
  fanout_test::until(closer.alone);
  CHECK(entered == 0);
  closer.open();
  for (std::thread& thread : late) thread.join();
  CHECK(entered == 3);
  CHECK_FALSE(together);
}

TEST_CASE("a nested shared lock waits for an exclusive holder, but not for an exclusive waiter") {
  SharedMutex mutex;
  mutex.lock_shared();
  Closer closer(mutex);
  mutex.lock_shared_nested();  // returns
  CHECK_FALSE(closer.alone);
  mutex.unlock_shared();
  CHECK_FALSE(closer.alone);
  mutex.unlock_shared();
  fanout_test::until(closer.alone);

  std::atomic<int> comer{0};
  std::atomic<bool> beside{false};
  std::thread coming([&] {
    comer = fanout_test::this_thread();
    mutex.lock_shared_nested();
    beside = closer.alone.load();
    mutex.unlock_shared();
  });
  fanout_test::until_asleep(comer);
  closer.open();
  coming.join();
  CHECK_FALSE(beside);
}

TEST_CASE("a second exclusive lock waits until the first is released") {
  SharedMutex mutex;
  mutex.lock();
  std::atomic<int> number{0};
  std::atomic<bool> alone{false};
  std::thread second([&] {
    number = fanout_test::this_thread();
    mutex.lock();
    alone = true;
    mutex.unlock();
  });
  fanout_test::until_asleep(number);
  CHECK_FALSE(alone);
  mutex.unlock();
  second.join();
  CHECK(alone);
  mutex.lock_shared();
  mutex.unlock_shared();
}

TEST_CASE("in the child of a fork the shared mutex is free, whatever other threads did in the parent") {
  SharedMutex mutex;
  std::atomic<bool> ready{false};
  std::atomic<bool> end{false};
  const auto use_in_child = [&] {
    return in_child([&] {
      mutex.lock_shared();
      mutex.lock_shared();
      mutex.unlock_shared();
      mutex.unlock_shared();
      mutex.lock();
      mutex.unlock();
      mutex.lock_shared();
      return 0;
    });
  };
  SUBCASE("one held a shared lock") {
    std::thread other([&] {
      mutex.lock_shared();
      ready = true;
      fanout_test::until(end);
      mutex.unlock_shared();
    });
    fanout_test::until(ready);
    CHECK(use_in_child() == 0);
    end = true;
    other.join();
  }
  SUBCASE("one held the exclusive lock") {
    std::thread other([&] {
      mutex.lock();
      ready = true;
      fanout_test::until(end);
      mutex.unlock();
    });
    fanout_test::until(ready);
    CHECK(use_in_child() == 0);
    end = true;
    other.join();
  }
  SUBCASE("one waited for the exclusive lock and one for a shared lock") {
    std::atomic<int> closer{0};
    std::atomic<int> enterer{0};
    mutex.lock_shared();
    std::thread closing([&] {
      closer = fanout_test::this_thread();
      mutex.lock();
      mutex.unlock();
    });
    fanout_test::until_asleep(closer);
    std::thread entering([&] {
      enterer = fanout_test::this_thread();
      mutex.lock_shared();
      mutex.unlock_shared();
    });
    fanout_test::until_asleep(enterer);
    CHECK(use_in_child() == 0);
    mutex.unlock_shared();
    closing.join();
    entering.join();
  }
  mutex.lock();  // the parent's mutex is as it was
  mutex.unlock();
}

TEST_CASE("a thread that forks with a shared lock holds none in the child") {
  SharedMutex mutex;
  mutex.lock_shared();
  CHECK(in_child([&] {
          mutex.unlock_shared();
          mutex.lock();
          mutex.unlock();
          return 0;
        }) == 0);
  CHECK(in_child([&] {
          mutex.lock_shared();  // a call inside the one that forked
          mutex.unlock_shared();
          mutex.unlock_shared();
          mutex.lock();
          mutex.unlock();
          mutex.lock_shared();
          return 0;
        }) == 0);
  CHECK(in_child([&] {
          mutex.lock();  // as another thread of the child might
          mutex.unlock_shared();
          mutex.unlock();
          mutex.lock();
          mutex.unlock();
          return 0;
        }) == 0);
  mutex.unlock_shared();
  mutex.lock();
  CHECK(in_child([&] {
          mutex.lock_shared();
          mutex.unlock_shared();
          mutex.unlock();
          mutex.lock();
          return 0;
        }) == 0);
  mutex.unlock();
}

TEST_CASE("SharedLock and ExclusiveLock hold their lock as long as they live") {
  SharedMutex mutex;
  std::atomic<int> closer{0};
  std::atomic<bool> alone{false};
  std::thread closing;
  {
    const fanout::detail::SharedLock inside(mutex, false);
    closing = std::thread([&] {
      closer = fanout_test::this_thread();
      const fanout::detail::ExclusiveLock closed(mutex);
      alone = true;
    });
    fanout_test::until_asleep(closer);
    const fanout::detail::SharedLock nested(mutex, true);  // though somebody waits
    CHECK_FALSE(alone);
  }
  closing.join();
  CHECK(alone);
  mutex.lock();
  mutex.unlock();
}

TEST_CASE("an ExclusiveLock held across a fork does not unlock a lock taken in the child") {
  if (!fanout_test::can_fork) return fanout_test::skip(fanout_test::cannot_fork);
  SharedMutex mutex;
  std::optional<fanout::detail::ExclusiveLock> closed(std::in_place, mutex);
  CHECK(in_child([&] {
          mutex.lock();  // as another thread of the child might
          closed.reset();
          std::atomic<int> number{0};
          std::atomic<bool> entered{false};
          std::thread enterer([&] {
            number = fanout_test::this_thread();
            mutex.lock_shared();
            entered = true;
            mutex.unlock_shared();
          });
          fanout_test::until_asleep(number);
          const bool too_early = entered;
          mutex.unlock();
          enterer.join();
          return too_early ? 1 : 0;
        }) == 0);
}

TEST_CASE("a waiting exclusive lock runs its help function, again after each reminder") {
  SharedMutex mutex;
  mutex.lock_shared();
  std::atomic<int> number{0};
  std::atomic<int> work{1};  // that those inside wait for
  std::atomic<bool> alone{false};
  std::thread closer([&] {
    number = fanout_test::this_thread();
    const fanout::detail::ExclusiveLock closed(mutex, [&]() noexcept { work = 0; });
    alone = true;
  });
  fanout_test::until_asleep(number);
  CHECK(work == 0);
  work = 1;
  mutex.remind();
  while (work == 1) std::this_thread::yield();
  CHECK_FALSE(alone);
  mutex.unlock_shared();
  closer.join();
  CHECK(alone);
  mutex.lock_shared();
  mutex.remind();  // there is nobody
  mutex.unlock_shared();
}
