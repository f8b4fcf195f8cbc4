// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/worker/task.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "support/asleep.hpp"
#include "support/fork.hpp"

using fanout::detail::fork_epoch;

namespace {

struct Counted : fanout::detail::Task {
  Counted() {
    prepare([](fanout::detail::Task& task) noexcept { ++static_cast<Counted&>(task).runs; });
  }
  int runs = 0;  // plain: done-ness is all that guards it
};

}  // namespace

TEST_CASE("a task that nobody prepared has nothing to wait for") {
  fanout::detail::Task task;
  CHECK(task.is_done());
  CHECK(task.wait(0, fork_epoch()));
}

TEST_CASE("a task is done when it has run, once for each time that it was prepared") {
  Counted task;
  CHECK_FALSE(task.is_done());
  CHECK(task.runs == 0);
  task.run();
  CHECK(task.is_done());
  CHECK(task.wait(0, fork_epoch()));
  CHECK(task.runs == 1);
  task.prepare([](fanout::detail::Task& again) noexcept { static_cast<Counted&>(again).runs += 10; });
  CHECK_FALSE(task.is_done());
  task.run();
  CHECK(task.runs == 11);
}

TEST_CASE("a thread that waits for a task sleeps until another has run it") {
  for (const std::int64_t spins : {0, 1000}) {
    Counted task;
    std::atomic<int> number{0};
    std::atomic<bool> waited{false};
    std::thread waiter([&] {
      number = fanout_test::this_thread();
      const bool ran = task.wait(spins, fork_epoch());
      waited = ran && task.runs == 1;
    });
    fanout_test::until_asleep(number);
    CHECK_FALSE(waited);
    task.run();
    waiter.join();
    CHECK(waited);
  }
}

TEST_CASE("a wait for a task with a deadline ends then, or when the task is done") {
  Counted task;
  CHECK_FALSE(task.wait(10, fork_epoch(), fanout::detail::Clock::now() - 1));
  const fanout::detail::Clock::Time until = fanout::detail::Clock::now() + 5'000'000;
  CHECK_FALSE(task.wait(0, fork_epoch(), until));
  CHECK(fanout::detail::Clock::now() >= until);
  std::atomic<int> number{0};
  std::atomic<bool> waited{false};
  std::thread waiter([&] {
    number = fanout_test::this_thread();
    waited =
        task.wait(fanout::detail::Ticks::forever, fork_epoch(), fanout::detail::Clock::never - 1) && task.runs == 1;
  });
  fanout_test::until_asleep(number);
  task.run();
  waiter.join();
  CHECK(waited);
  CHECK(task.wait(0, fork_epoch(), 1));
}

TEST_CASE("a task may be destroyed as soon as wait has returned") {
  constexpr int turns = 3000;
  std::atomic<Counted*> handed{nullptr};
  std::thread runner([&] {
    for (int i = 0; i < turns; ++i) {
      Counted* task = nullptr;
      while ((task = handed.exchange(nullptr)) == nullptr) std::this_thread::yield();
      task->run();
    }
  });
  int ran = 0;
  for (int i = 0; i < turns; ++i) {
    auto task = std::make_unique<Counted>();
    handed = task.get();
    if (task->wait(i % 3 == 0 ? 0 : static_cast<std::int64_t>(10 * (i % 200)), fork_epoch())) ran += task->runs;
  }
  runner.join();
  CHECK(ran == turns);
}

TEST_CASE("in the child of a fork a wait for another thread's task ends and returns false") {
  struct Held : fanout::detail::Task {
    std::atomic<bool> started{false};
    std::atomic<bool> end{false};
  } task;
  task.prepare([](fanout::detail::Task& self) noexcept {
    auto& held = static_cast<Held&>(self);
    held.started = true;
    fanout_test::until(held.end);
  });
  const std::uint32_t epoch = fork_epoch();
  std::thread runner([&] { task.run(); });
  fanout_test::until(task.started);
  CHECK(fanout_test::in_child([&] { return task.wait(10, epoch) ? 1 : 0; }) == 0);
  CHECK_FALSE(task.is_done());
  task.end = true;
  CHECK(task.wait(10, epoch));
  runner.join();
}
