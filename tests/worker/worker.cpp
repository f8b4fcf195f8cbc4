// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/worker/worker.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <fanout/waiting/wake_latency.hpp>
#include <fanout/worker/cores.hpp>

#include "support/affinity.hpp"
#include "support/asleep.hpp"
#include "support/fork.hpp"
#include "support/skip.hpp"

using fanout::backend::Worker;
using fanout::detail::fork_epoch;
using fanout::detail::Task;

namespace {

/// Workers live until the process ends.
Worker& new_worker(int index, bool bound = false, const std::vector<int>& cores = fanout::detail::process_cores()) {
  static auto& all = *new std::vector<Worker*>;  // so that the leak checker finds them
  return *all.emplace_back(new Worker({.kind = "test", .index = index}, cores, bound));
}

/// A task that calls a function object.
template <class F>
struct Calling : Task {
  explicit Calling(F what) : f(what) {
    prepare([](Task& task) noexcept { static_cast<Calling&>(task).f(); });
  }
  F f;
};

bool wait_for(Task& task) { return task.wait(0, fork_epoch()); }

bool same(const sigset_t& a, const sigset_t& b) {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (sigismember(&a, signal) != sigismember(&b, signal)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a worker says what it was made with, and spins only if it owns its cores") {
  Worker& bound = new_worker(1, true, {0});
  CHECK(bound.id() == fanout::DeviceId{.kind = "test", .index = 1});
  CHECK(bound.cores() == std::vector<int>{0});
  CHECK(bound.bound());
  CHECK(bound.spin_ticks(fanout::Spin::rules) == fanout::detail::Ticks::forever);
  CHECK(bound.spin_ticks(fanout::Adaptive::rules) > 0);
  CHECK(bound.spin_ticks(fanout::Park::rules) == 0);
  CHECK(new_worker(2).spin_ticks(fanout::Spin::rules) == 0);
}

TEST_CASE("the spin limit grows with the expected shard time") {
  using fanout::detail::Ticks;
  constexpr fanout::WaitRules patient{.spin = 1'000, .longest_spin = 1'000'000};
  const Worker& bound = new_worker(1, true, {0});
  const std::int64_t least = Ticks::in(1'000);
  const std::int64_t most = Ticks::in(1'000'000);
  CHECK(bound.spin_ticks(patient, -1) == least);  // not known
  CHECK(bound.spin_ticks(patient, 8 * least) == least);
  CHECK(bound.spin_ticks(patient, 800 * least) == 100 * least);
  CHECK(bound.spin_ticks(patient, 4 * most) == most / 2);
  CHECK(bound.spin_ticks(patient, 16 * most) == most);
  CHECK(bound.spin_ticks({.spin = 1'000}, 16 * most) == least);
  CHECK(bound.spin_ticks(fanout::Park::rules, 16 * most) == 0);
  CHECK(bound.spin_ticks(fanout::Spin::rules, 16 * most) == Ticks::forever);
  CHECK(new_worker(2).spin_ticks(patient, 16 * most) == 0);
}

TEST_CASE("a worker runs the tasks that are posted to it in order, on one thread of its own") {
  for (const bool bound : {false, true}) {
    Worker& worker = new_worker(3, bound);
    std::vector<int> order;  // plain: the worker's one thread is all that touches it
    std::array<std::thread::id, 3> threads{};
    const auto note = [&](int number) {
      return [&order, &threads, number] {
        order.push_back(number);
        threads[static_cast<std::size_t>(number)] = std::this_thread::get_id();
      };
    };
    for (int round = 0; round < 50; ++round) {
      order.clear();
      Calling first(note(0));
      Calling second(note(1));
      Calling third(note(2));
      worker.post(first);
      worker.post(second);
      worker.post(third);
      CHECK(wait_for(third));
      CHECK(wait_for(first));
      CHECK(wait_for(second));
      CHECK(order == std::vector<int>{0, 1, 2});
    }
    CHECK(threads[0] != std::this_thread::get_id());
    CHECK(threads[0] == threads[1]);
    CHECK(threads[0] == threads[2]);
  }
}

TEST_CASE("tasks from many threads are all run, one at a time") {
  Worker& worker = new_worker(4);
  constexpr int threads = 4;
  constexpr int each = 2000;
  int counter = 0;  // plain
  std::atomic<int> in_vain{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        Calling task([&counter] { ++counter; });
        worker.post(task);
        if (i % 4 == 0 && worker.take_back(task)) {
          const fanout::detail::DeviceLock held(worker.handoff());
          task.run();
        }
        if (!wait_for(task)) ++in_vain;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  CHECK(in_vain == 0);
  CHECK(counter == threads * each);
}

TEST_CASE("a worker takes no task while another thread holds the device, so that it can be taken back") {
  Worker& worker = new_worker(5);
  std::atomic<int> thread{0};
  Calling hello([&thread] { thread = fanout_test::this_thread(); });
  worker.post(hello);
  REQUIRE(wait_for(hello));

  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) {
    worker.handoff().lock();
    Calling task([&ran] { ++ran; });
    worker.post(task);
    if (i % 2 == 0) fanout_test::until_asleep(thread);
    CHECK_FALSE(task.is_done());
    CHECK(ran == i / 2);
    if (i % 2 == 0) {
      CHECK(worker.take_back(task));
      CHECK_FALSE(worker.take_back(task));
      worker.handoff().unlock();
      Calling next([] {});  // the worker goes on with the next one
      worker.post(next);
      CHECK(wait_for(next));
      CHECK_FALSE(task.is_done());
    } else {
      worker.handoff().unlock();
      CHECK(wait_for(task));
    }
  }
  CHECK(ran == 50);
}

TEST_CASE("a task that has been started or is done cannot be taken back") {
  Worker& worker = new_worker(6);
  std::atomic<bool> started{false};
  std::atomic<bool> end{false};
  Calling task([&] {
    started = true;
    fanout_test::until(end);
  });
  worker.post(task);
  fanout_test::until(started);
  CHECK_FALSE(worker.take_back(task));
  CHECK_FALSE(worker.handoff().try_lock());  // the worker's thread has it while it runs
  end = true;
  CHECK(wait_for(task));
  CHECK_FALSE(worker.take_back(task));
  worker.handoff().lock();
  worker.handoff().unlock();
}

TEST_CASE("a worker's thread is on the device's cores and blocks signals from outside, and its poster's masks stay") {
  const std::vector<int> all = fanout::detail::process_cores();
  for (const int core : {all.front(), all.back()}) {
    Worker& worker = new_worker(7, true, {core});
    sigset_t signals_before;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &signals_before);
    const auto cores_before = fanout_test::own_cores();

    std::vector<int> cores;
    sigset_t signals;
    Calling task([&] {
      cores = fanout_test::own_cores();
      ::pthread_sigmask(SIG_SETMASK, nullptr, &signals);
    });
    worker.post(task);
    REQUIRE(wait_for(task));
#if defined(__linux__)  // elsewhere fanout binds no thread
    CHECK(cores == std::vector<int>{core});
#endif
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
      if (signal == SIGKILL || signal == SIGSTOP || (signal > SIGSYS && signal < SIGRTMIN)) continue;
      CAPTURE(signal);
      const bool own_fault =
          signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP;
      CHECK(sigismember(&signals, signal) == (own_fault ? 0 : 1));
    }

    sigset_t signals_after;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &signals_after);
    CHECK(same(signals_before, signals_after));
    CHECK(fanout_test::own_cores() == cores_before);
  }
}

TEST_CASE("a task may use a megabyte of stack, as a thread of glibc may") {
  Worker& worker = new_worker(14);
  int touched = 0;
  Calling task([&touched] {
    volatile char room[std::size_t{1} << 20];
    for (std::size_t at = sizeof room; at > 4096; at -= 4096) {  // as a function does that uses it from its top down
      room[at - 1] = 1;
      ++touched;
    }
  });
  worker.post(task);
  REQUIRE(wait_for(task));
  CHECK(touched == 255);
}

TEST_CASE("a worker whose cores the process may not use runs all the same") {
  Worker& worker = new_worker(8, true, {1023});
  int runs = 0;
  Calling task([&runs] { ++runs; });
  worker.post(task);
  CHECK(wait_for(task));
  CHECK(runs == 1);
}

TEST_CASE("in the child of a fork a worker runs tasks in a thread of the child's own") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  Worker& worker = new_worker(9);
  const auto use = [&worker] {
    for (int i = 0; i < 20; ++i) {
      int runs = 0;
      Calling task([&runs] { ++runs; });
      worker.post(task);
      if (!wait_for(task) || runs != 1) return 1;
    }
    return 0;
  };
  REQUIRE(use() == 0);
  CHECK(fanout_test::in_child(use) == 0);  // its thread slept at the fork

  std::atomic<bool> started{false};
  std::atomic<bool> end{false};
  Calling running([&] {
    started = true;
    fanout_test::until(end);
  });
  std::atomic<int> waiting_runs{0};
  Calling waiting([&] { ++waiting_runs; });
  Calling waiting_too([&] { ++waiting_runs; });
  worker.post(running);
  fanout_test::until(started);
  worker.post(waiting);
  worker.post(waiting_too);
  CHECK(fanout_test::in_child([&] {
          if (use() != 0) return 1;
          if (waiting_runs != 0) return 2;  // what was queued is the parent's work
          return fanout_test::in_child(use);
        }) == 0);
  end = true;
  CHECK(wait_for(running));
  CHECK(wait_for(waiting));
  CHECK(wait_for(waiting_too));
  CHECK(waiting_runs == 2);
  CHECK(use() == 0);
}

TEST_CASE("in the child of a fork a device that another thread had is free") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  Worker& worker = new_worker(10);
  std::atomic<bool> taken{false};
  std::atomic<bool> end{false};
  std::thread holder([&] {
    const fanout::detail::DeviceLock held(worker.handoff());
    taken = true;
    fanout_test::until(end);
  });
  fanout_test::until(taken);
  CHECK(fanout_test::in_child([&worker] {
          int runs = 0;
          Calling task([&runs] { ++runs; });
          worker.post(task);
          return wait_for(task) && runs == 1 ? 0 : 1;
        }) == 0);
  end = true;
  holder.join();
}

TEST_CASE("a worker without cores has no thread and leaves posted tasks to be taken back") {
  Worker worker({.kind = "none", .index = 0}, {}, false);
  CHECK_FALSE(worker.has_thread());
  CHECK(Worker({.kind = "one", .index = 0}, {0}, false).has_thread());
  std::thread::id thread;
  Calling task([&thread] { thread = std::this_thread::get_id(); });
  worker.post(task);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(task.is_done());
  CHECK(worker.take_back(task));
  task.run();
  CHECK(task.is_done());
  CHECK(thread == std::this_thread::get_id());
}

namespace {

/// Has its thread run one request whose caller waits by these rules.
void call_by(Worker& worker, const fanout::WaitRules& rules) {
  const auto nothing = [](const void*, std::size_t) noexcept -> fanout::detail::Atomic<bool>* { return nullptr; };
  fanout::detail::HandoffSlot::Ticket ticket = 0;
  while ((ticket = worker.post(nothing, nullptr, 0, rules)) == 0) std::this_thread::yield();
  REQUIRE(worker.handoff().await(ticket, 0, fork_epoch()));
}

bool waits_by(const Worker& worker, const fanout::WaitRules& rules) {
  return fanout::detail::RulesWord::of(worker.rules()) == fanout::detail::RulesWord::of(rules);
}

/// Leaves a task with the worker and waits for it, in ms.
double time_to_find(Worker& worker) {
  const auto begin = std::chrono::steady_clock::now();
  Calling task([] {});
  if (!worker.defer(task)) return 0;  // then a call dispatches it at once
  CHECK(wait_for(task));
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

constexpr double long_ms = 2'000;  // 20 on a machine that is idle

}  // namespace

TEST_CASE("a worker keeps a copy of the rules by which it waits") {
  Worker& worker = new_worker(11, true);
  CHECK(waits_by(worker, fanout::Adaptive::rules));
  {
    fanout::WaitRules rules{.spin = 64'000, .inlines_small = true};  // as of a library that is closed after the call
    call_by(worker, rules);
    rules = {.spin = 128};
  }
  CHECK(waits_by(worker, {.spin = 64'000, .inlines_small = true}));
}

TEST_CASE("a worker's thread has the name of its device, or the beginning of it") {
#if defined(__linux__)
  for (const int index : {17, 123'456'789}) {
    Worker& worker = new_worker(index);
    call_by(worker, fanout::Park::rules);  // now its thread has been started and named
    std::string name;
    Calling task([&name] {
      char text[16] = {};
      ::prctl(PR_GET_NAME, text);
      name = text;
    });
    worker.post(task);
    REQUIRE(wait_for(task));
    CHECK(name == ("fanout test:" + std::to_string(index)).substr(0, 15));
  }
#endif
}

TEST_CASE("the wake-up latency is measured only by requests that wake their thread") {
  // More than any wake counts, so that each wake of this machine makes it less, or leaves it.
  for (int i = 0; i < 200; ++i) fanout::detail::wake_latency.note(fanout::detail::Ticks::in(1'000'000));
  const std::int64_t long_wakes = fanout::detail::wake_latency.nanoseconds();
  Worker& worker = new_worker(18, true);
  for (int i = 0; i < 200 && fanout::detail::wake_latency.nanoseconds() == long_wakes; ++i) {
    call_by(worker, fanout::Park::rules);
    while (!worker.is_asleep()) std::this_thread::yield();
  }
  CHECK(fanout::detail::wake_latency.nanoseconds() < long_wakes);

  call_by(worker, fanout::Spin::rules);
  const std::int64_t before = fanout::detail::wake_latency.nanoseconds();
  REQUIRE(before < long_wakes);
  for (int i = 0; i < 100; ++i) call_by(worker, fanout::Spin::rules);
  CHECK(fanout::detail::wake_latency.nanoseconds() == before);
  call_by(worker, fanout::Park::rules);  // no core is kept busy
}

TEST_CASE("a worker gets its wait rules even if the request is taken back before its thread wakes") {
  Worker& worker = new_worker(12, true);
  const auto nothing = [](const void*, std::size_t) noexcept -> fanout::detail::Atomic<bool>* { return nullptr; };
  std::atomic<int> thread{0};
  Calling hello([&thread] { thread = fanout_test::this_thread(); });
  worker.post(hello);
  REQUIRE(wait_for(hello));
  constexpr fanout::WaitRules other{.predicts = true};
  bool back = false;
  while (!back) {
    call_by(worker, fanout::Park::rules);
    fanout_test::until_asleep(thread);
    const fanout::detail::HandoffSlot::Ticket ticket = worker.post(nothing, nullptr, 0, other);
    if (ticket == 0) continue;
    back = worker.handoff().take_back(ticket);
    if (back) worker.handoff().unlock();
    if (!back) CHECK(worker.handoff().await(ticket, 0, fork_epoch()));
  }
  CHECK(waits_by(worker, other));
}

TEST_CASE("a thread finds a deferred task while it spins, sleeps or waits for a predicted call") {
  Worker& worker = new_worker(13, true);
  for (const fanout::WaitRules& rules :
       {fanout::Spin::rules, fanout::WaitRules{.spin = 60'000'000'000}, fanout::Adaptive::rules, fanout::Park::rules}) {
    for (int i = 0; i < 3; ++i) {
      call_by(worker, rules);
      CHECK(time_to_find(worker) < long_ms);
    }
  }
  Worker& predicting = new_worker(14, true);
  constexpr fanout::WaitRules predicts{.predicts = true};
  for (int i = 0; i < 12; ++i) {
    call_by(predicting, predicts);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  call_by(predicting, predicts);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(time_to_find(predicting) < 200);  // and not when the next call is due
}

TEST_CASE("a thread predicts calls at regular intervals after the last one's end, and sleeps through others") {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  constexpr fanout::WaitRules predicts{.predicts = true};
  Worker& irregular = new_worker(19, true);
  call_by(irregular, predicts);
  while (!irregular.is_asleep()) std::this_thread::yield();
  int woken = 0;
  for (int i = 0; i < 80; ++i) {
    std::this_thread::sleep_for(milliseconds(i % 2 == 0 ? 1 : 10));
    irregular.note_deferred(1'000);
    woken += irregular.is_asleep() ? 0 : 1;
  }
  CHECK(woken <= 2);  // a wait may end for no reason; a thread that took this for regular would be woken ten times

  // Gaps that differ by a millisecond, so that the thread wakes long enough before the next call to be seen.
  Worker& regular = new_worker(20, true);
  call_by(regular, predicts);
  bool predicted = false;
  int late = 0;
  auto ends = std::chrono::steady_clock::now();
  for (int i = 0; i < 100 && !predicted; ++i) {
    const auto comes = ends + microseconds(i % 4 < 2 ? 49'500 : 50'500);
    std::this_thread::sleep_until(comes - milliseconds(5));
    while (std::chrono::steady_clock::now() < comes && !predicted) {
      predicted = !regular.is_asleep();
      std::this_thread::sleep_for(microseconds(50));
    }
    if (std::chrono::steady_clock::now() - comes > milliseconds(2)) ++late;
    const milliseconds takes(i % 2 == 0 ? 5 : 100);
    ends = std::chrono::steady_clock::now() + takes;
    regular.note_deferred(std::chrono::nanoseconds(takes).count());
  }
  if (!predicted && late > 5) {
    fanout_test::skip("the machine was too busy for regular gaps");
    return;
  }
  CHECK(predicted);
}

namespace {

/// A task that posts the next one, as long as it is to go on.
struct Endless : Task {
  Worker& worker;
  const std::atomic<bool>& end;
  Endless* next = nullptr;
  std::atomic<bool> ended{false};
  Endless(Worker& at, const std::atomic<bool>& until) : worker(at), end(until) {}
  void go_on() {
    prepare([](Task& task) noexcept {
      auto& self = static_cast<Endless&>(task);
      while (!self.next->is_done()) fanout::detail::pause();
      self.end ? void(self.ended = true) : self.next->go_on();
    });
    worker.post(*this);
  }
};

}  // namespace

TEST_CASE("no task is deferred to a thread that has not been started") {
  Worker& worker = new_worker(23, true);
  Calling task([] {});
  CHECK_FALSE(worker.defer(task));
  CHECK_FALSE(worker.take_deferred(task));
}

TEST_CASE("a thread finds a deferred task also if it always has work") {
  Worker& worker = new_worker(15, true);
  call_by(worker, fanout::Spin::rules);
  std::atomic<bool> end{false};
  Endless first(worker, end);
  Endless second(worker, end);
  first.next = &second;
  second.next = &first;
  first.go_on();  // from now on the queue is never empty
  Calling left([] {});
  REQUIRE(worker.defer(left));
  using clock = std::chrono::steady_clock;
  for (const auto begin = clock::now(); !left.is_done() && clock::now() - begin < std::chrono::seconds(20);) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const bool found = left.is_done();
  CHECK(found);
  end = true;
  while (!first.ended && !second.ended) std::this_thread::yield();
  CHECK(wait_for(first));
  CHECK(wait_for(second));
  if (!found && !worker.take_deferred(left)) CHECK(wait_for(left));
}

TEST_CASE("a task that is deferred only for a moment is not run by the thread") {
  Worker& worker = new_worker(16, true);
  call_by(worker, fanout::Spin::rules);
  int left = 0;
  int too_early = 0;
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::seconds(1);
  while (clock::now() < end) {
    Calling task([] {});
    const auto begin = clock::now();
    if (!worker.defer(task)) continue;
    ++left;
    while (clock::now() - begin < std::chrono::microseconds(100)) fanout::detail::pause();
    if (worker.take_deferred(task)) continue;
    // It has run after a millisecond at least, in which this thread had to stand back.
    too_early += clock::now() - begin < std::chrono::microseconds(800) ? 1 : 0;
    CHECK(wait_for(task));
  }
  CHECK(left > 0);
  // A thread that is preempted between its check and its note of it may take the next task for the one that it saw.
  CHECK(too_early * 500 <= left);
}
