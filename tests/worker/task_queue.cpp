// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/worker/task_queue.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "support/fork.hpp"

using fanout::detail::Task;
using fanout::detail::TaskQueue;

TEST_CASE("a queue gives its tasks out in the order in which they came") {
  TaskQueue queue;
  std::array<Task, 5> tasks;
  CHECK(queue.empty());
  CHECK(queue.pop() == nullptr);
  for (Task& task : tasks) queue.push(task);
  CHECK_FALSE(queue.empty());
  for (Task& task : tasks) CHECK(queue.pop() == &task);
  CHECK(queue.pop() == nullptr);
  CHECK(queue.empty());
}

TEST_CASE("the order holds where pushes and pops alternate") {
  TaskQueue queue;
  std::array<Task, 40> tasks;
  std::size_t pushed = 0;
  std::size_t popped = 0;
  const auto push = [&](int n) {
    while (n-- > 0) queue.push(tasks[pushed++]);
  };
  const auto pop = [&](int n) {
    while (n-- > 0) CHECK(queue.pop() == &tasks[popped++]);
  };
  for (int round = 0; round < 5; ++round) {
    push(3), pop(1), push(2), pop(2), push(1), pop(3), push(1), pop(1), push(1), pop(1);
    CHECK(queue.empty());
  }
}

TEST_CASE("a task can be taken back wherever it stands, and only once") {
  for (std::size_t which = 0; which < 5; ++which) {
    CAPTURE(which);
    TaskQueue queue;
    std::array<Task, 5> tasks;
    for (Task& task : tasks) queue.push(task);
    CHECK(queue.remove(tasks[which]));
    CHECK_FALSE(queue.remove(tasks[which]));
    Task late;
    queue.push(late);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (i != which) CHECK(queue.pop() == &tasks[i]);
    }
    CHECK(queue.pop() == &late);
    CHECK(queue.empty());
  }
}

TEST_CASE("a queue from which all tasks were taken back, in any order, is empty and takes new ones") {
  TaskQueue queue;
  std::array<Task, 4> tasks;
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  do {
    for (Task& task : tasks) queue.push(task);
    for (const std::size_t i : order) CHECK(queue.remove(tasks[i]));
    CHECK(queue.empty());
    CHECK(queue.pop() == nullptr);
  } while (std::next_permutation(order.begin(), order.end()));
  queue.push(tasks[2]);
  CHECK(queue.pop() == &tasks[2]);
}

TEST_CASE("a task that was popped or never pushed cannot be taken back") {
  TaskQueue queue;
  std::array<Task, 3> tasks;
  Task stranger;
  CHECK_FALSE(queue.remove(stranger));
  for (Task& task : tasks) queue.push(task);
  CHECK(queue.pop() == &tasks[0]);
  CHECK_FALSE(queue.remove(tasks[0]));
  CHECK_FALSE(queue.remove(stranger));
  CHECK(queue.pop() == &tasks[1]);
  CHECK_FALSE(queue.remove(tasks[1]));
  CHECK(queue.remove(tasks[2]));
}

TEST_CASE("each task is had by exactly one thread while many push, pop and take back") {
  struct Owned : Task {
    std::atomic<int> had{0};
  };
  constexpr int producers = 3;
  constexpr int consumers = 3;
  constexpr int each = 4000;
  TaskQueue queue;
  std::vector<std::unique_ptr<Owned[]>> tasks;
  for (int p = 0; p < producers; ++p) tasks.push_back(std::make_unique<Owned[]>(each));
  std::atomic<int> left{producers * each};
  std::atomic<int> taken_back{0};
  std::vector<std::thread> all;
  for (int p = 0; p < producers; ++p) {
    all.emplace_back([&, p] {
      Owned* own = tasks[static_cast<std::size_t>(p)].get();
      const auto take_back = [&](int i) {
        if (!queue.remove(own[i])) return;
        ++own[i].had;
        ++taken_back;
        --left;
      };
      for (int i = 0; i < each; ++i) {
        queue.push(own[i]);
        if (i % 2 == 0) take_back(i);
        if (i % 7 == 0 && i >= 5) take_back(i - 5);
        if (i % 50 == 0) std::this_thread::yield();
      }
    });
  }
  for (int c = 0; c < consumers; ++c) {
    all.emplace_back([&] {
      while (left > 0) {
        if (Task* task = queue.pop()) {
          ++static_cast<Owned*>(task)->had;
          --left;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  int wrong = 0;
  for (const auto& own : tasks) {
    for (int i = 0; i < each; ++i) wrong += own[static_cast<std::size_t>(i)].had != 1 ? 1 : 0;
  }
  CHECK(wrong == 0);
  CHECK(taken_back > 0);
  CHECK(queue.empty());
}

TEST_CASE("tasks of one thread keep their order while others push") {
  struct Numbered : Task {
    int producer = 0;
    int number = 0;
  };
  constexpr int producers = 3;
  constexpr int each = 4000;
  TaskQueue queue;
  std::vector<std::unique_ptr<Numbered[]>> tasks;
  std::vector<std::thread> all;
  for (int p = 0; p < producers; ++p) {
    tasks.push_back(std::make_unique<Numbered[]>(each));
    all.emplace_back([&queue, own = tasks.back().get(), p] {
      for (int i = 0; i < each; ++i) {
        own[i].producer = p;
        own[i].number = i;
        queue.push(own[i]);
      }
    });
  }
  std::array<int, producers> next{};
  int wrong = 0;
  for (int popped = 0; popped < producers * each;) {
    Task* task = queue.pop();
    if (task == nullptr) {
      std::this_thread::yield();
      continue;
    }
    const auto& numbered = static_cast<Numbered&>(*task);
    int& expected = next[static_cast<std::size_t>(numbered.producer)];
    if (numbered.number != expected) ++wrong;
    expected = numbered.number + 1;
    ++popped;
  }
  for (std::thread& thread : all) thread.join();
  CHECK(wrong == 0);
  CHECK(queue.empty());
}

TEST_CASE("a queue whose list another thread held at a fork can be used in the child after forget") {
  TaskQueue queue;
  std::array<Task, 4> tasks;
  std::atomic<bool> end{false};
  std::thread busy([&] {
    while (!end) {
      for (Task& task : tasks) queue.push(task);
      while (queue.pop() != nullptr) continue;
    }
  });
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    failed += fanout_test::in_child([&] {
                queue.forget();
                std::array<Task, 3> own;
                for (Task& task : own) queue.push(task);
                if (queue.pop() != &own[0] || !queue.remove(own[2]) || queue.pop() != &own[1]) return 1;
                return queue.empty() ? 0 : 2;
              }) != 0
                  ? 1
                  : 0;
  }
  end = true;
  busy.join();
  CHECK(failed == 0);
}

TEST_CASE("very many tasks are taken back in any order, each in the same time") {
  TaskQueue queue;
  constexpr std::size_t size = 200'000;
  const auto tasks = std::make_unique<Task[]>(size);
  for (const bool backwards : {true, false}) {
    for (std::size_t i = 0; i < size; ++i) queue.push(tasks[i]);
    const auto begin = std::chrono::steady_clock::now();
    std::size_t removed = 0;
    for (std::size_t i = 0; i < size; ++i) removed += queue.remove(tasks[backwards ? size - 1 - i : i]) ? 1 : 0;
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));  // a search would take a minute
    CHECK(removed == size);
    CHECK(queue.empty());
    CHECK_FALSE(queue.remove(tasks[size / 2]));
  }
}

TEST_CASE("after forget() the queue is empty and works, and its earlier tasks cannot be taken back") {
  TaskQueue queue;
  std::array<Task, 4> tasks;
  for (Task& task : tasks) queue.push(task);
  queue.forget();
  CHECK(queue.empty());
  CHECK(queue.pop() == nullptr);
  Task fresh;
  Task behind;
  queue.push(fresh);
  queue.push(behind);
  for (Task& task : tasks) CHECK_FALSE(queue.remove(task));
  CHECK(queue.pop() == &fresh);
  CHECK(queue.pop() == &behind);
  CHECK_FALSE(queue.remove(behind));
  CHECK(queue.empty());
}
