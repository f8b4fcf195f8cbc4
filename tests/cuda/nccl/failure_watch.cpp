// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/nccl/failure_watch.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using fanout::cuda::detail::failure_watch;
using fanout::cuda::detail::WatchedWork;

namespace {

struct Looked final : WatchedWork {
  explicit Looked(int slow = 0) : milliseconds(slow) {}
  void look() noexcept override {
    inside = true;
    ++looks;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    inside = false;
  }
  void await(int more) const {
    const int before = looks;
    while (looks < before + more) std::this_thread::yield();
  }
  const int milliseconds;
  std::atomic<int> looks{0};
  std::atomic<bool> inside{false};
};

}  // namespace

TEST_CASE("all watched work is looked at again and again, until it is removed") {
  Looked first, second;
  REQUIRE(failure_watch.add(first));
  first.await(3);
  REQUIRE(failure_watch.add(second));
  first.await(3);
  second.await(3);
  failure_watch.remove(first);
  const int looks = first.looks;
  second.await(3);
  CHECK(first.looks == looks);
  failure_watch.remove(second);
}

TEST_CASE("work is removed once a look at it has ended, and others go on") {
  for (int i = 0; i < 20; ++i) {
    Looked slow(5), quick;
    REQUIRE(failure_watch.add(slow));
    REQUIRE(failure_watch.add(quick));
    while (!slow.inside) std::this_thread::yield();
    failure_watch.remove(slow);
    CHECK_FALSE(slow.inside);
    quick.await(2);
    failure_watch.remove(quick);
  }
}

TEST_CASE("the watch wakes up after a pause") {
  Looked work;
  std::this_thread::sleep_for(std::chrono::milliseconds(250));  // it sleeps after 100
  REQUIRE(failure_watch.add(work));
  work.await(2);
  failure_watch.remove(work);
}

TEST_CASE("threads add and remove work at the same time") {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        Looked work;
        REQUIRE(failure_watch.add(work));
        if (i % 5 == t) work.await(1);
        failure_watch.remove(work);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("work that was never added may be removed") {
  Looked work;
  failure_watch.remove(work);
  CHECK(work.looks == 0);
}
