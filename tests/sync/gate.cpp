// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/sync/gate.hpp>

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

using fanout::detail::Gate;
using fanout_test::in_child;

namespace {

/// A thread that closes a gate and is alone in it until it is told to open it; made when that thread waits for others.
class Closer {
 public:
  explicit Closer(Gate& gate)
      : thread_([this, &gate] {
          number_ = fanout_test::this_thread();
          gate.close();
          alone = true;
          fanout_test::until(go_on_);
          alone = false;
          gate.open();
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

TEST_CASE("many are inside an open gate at once") {
  constexpr int threads = 5;
  Gate gate;
  std::atomic<int> inside{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      gate.enter();
      ++inside;
      while (inside != threads) std::this_thread::yield();  // ends only if all of them are in
      gate.leave();
    });
  }
  for (std::thread& thread : all) thread.join();
  gate.close();  // returns: all have left
  gate.open();
}

TEST_CASE("the one who has closed a gate is alone, however many enter and close") {
  constexpr int turns = 2000;
  Gate gate;
  int a = 0;  // plain: the gate is all that guards them
  int b = 0;
  std::atomic<int> torn{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < turns; ++i) {
        gate.enter();
        if (a != b) ++torn;
        if (i % 32 == 0) std::this_thread::yield();
        gate.leave();
      }
    });
  }
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < turns; ++i) {
        gate.close();
        ++a;
        if (i % 16 == 0) std::this_thread::yield();
        ++b;
        gate.open();
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  CHECK(torn == 0);
  CHECK(a == 3 * turns);
  CHECK(b == 3 * turns);
}

TEST_CASE("a gate counts who comes in, on whichever way, also over a fork") {
  Gate gate;
  CHECK(gate.enter() == 0);
  CHECK(gate.enter_from_inside_another() == 1);
  gate.leave();
  gate.leave();
  gate.close();
  gate.open();
  CHECK(gate.enter() == 2);
  if (!fanout_test::can_fork) return fanout_test::skip(fanout_test::cannot_fork);
  CHECK(in_child([&] { return static_cast<int>(gate.enter()); }) == 3);
  gate.leave();
}

TEST_CASE("who enters from inside another gate while one comes to be alone is not beside him") {
  constexpr int turns = 2000;
  Gate gate;
  int a = 0;  // plain: the gate is all that guards them
  int b = 0;
  std::atomic<int> torn{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < turns; ++i) {
        gate.enter_from_inside_another();
        if (a != b) ++torn;
        gate.leave();
      }
    });
  }
  all.emplace_back([&] {
    for (int i = 0; i < turns; ++i) {
      gate.close();
      ++a;
      ++b;
      gate.open();
    }
  });
  for (std::thread& thread : all) thread.join();
  CHECK(torn == 0);
  CHECK(a == turns);
}

TEST_CASE("close waits for those inside, and lets nobody in behind them") {
  Gate gate;
  gate.enter();
  gate.enter();
  Closer closer(gate);
  CHECK_FALSE(closer.alone);

  std::array<std::atomic<int>, 3> numbers{};
  std::atomic<int> entered{0};
  std::atomic<bool> together{false};
  std::vector<std::thread> late;
  for (auto& number : numbers) {
    late.emplace_back([&] {
      number = fanout_test::this_thread();
      gate.enter();
      if (closer.alone) together = true;
      ++entered;
      gate.leave();
    });
  }
  for (const auto& number : numbers) fanout_test::until_asleep(number);
  CHECK(entered == 0);

  gate.leave();
  CHECK_FALSE(closer.alone);  // one is inside still
  CHECK(entered == 0);
  gate.leave();
  fanout_test::until(closer.alone);
  CHECK(entered == 0);
  closer.open();
  for (std::thread& thread : late) thread.join();
  CHECK(entered == 3);
  CHECK_FALSE(together);
}

TEST_CASE("who comes from inside another gate passes one that somebody waits for, but not one who is alone") {
  Gate gate;
  gate.enter();
  Closer closer(gate);
  gate.enter_from_inside_another();  // returns
  CHECK_FALSE(closer.alone);
  gate.leave();
  CHECK_FALSE(closer.alone);
  gate.leave();
  fanout_test::until(closer.alone);

  std::atomic<int> comer{0};
  std::atomic<bool> beside{false};
  std::thread coming([&] {
    comer = fanout_test::this_thread();
    gate.enter_from_inside_another();
    beside = closer.alone.load();
    gate.leave();
  });
  fanout_test::until_asleep(comer);
  closer.open();
  coming.join();
  CHECK_FALSE(beside);
}

TEST_CASE("a second closer waits for the first one's open") {
  Gate gate;
  gate.close();
  std::atomic<int> number{0};
  std::atomic<bool> alone{false};
  std::thread second([&] {
    number = fanout_test::this_thread();
    gate.close();
    alone = true;
    gate.open();
  });
  fanout_test::until_asleep(number);
  CHECK_FALSE(alone);
  gate.open();
  second.join();
  CHECK(alone);
  gate.enter();
  gate.leave();
}

TEST_CASE("in the child of a fork nobody is inside and the gate is open, whatever other threads did in the parent") {
  Gate gate;
  std::atomic<bool> ready{false};
  std::atomic<bool> end{false};
  const auto use_in_child = [&] {
    return in_child([&] {
      gate.enter();
      gate.enter();
      gate.leave();
      gate.leave();
      gate.close();
      gate.open();
      gate.enter();
      return 0;
    });
  };
  SUBCASE("one was inside") {
    std::thread other([&] {
      gate.enter();
      ready = true;
      fanout_test::until(end);
      gate.leave();
    });
    fanout_test::until(ready);
    CHECK(use_in_child() == 0);
    end = true;
    other.join();
  }
  SUBCASE("one had closed it") {
    std::thread other([&] {
      gate.close();
      ready = true;
      fanout_test::until(end);
      gate.open();
    });
    fanout_test::until(ready);
    CHECK(use_in_child() == 0);
    end = true;
    other.join();
  }
  SUBCASE("one waited to be alone and one waited to enter") {
    std::atomic<int> closer{0};
    std::atomic<int> enterer{0};
    gate.enter();
    std::thread closing([&] {
      closer = fanout_test::this_thread();
      gate.close();
      gate.open();
    });
    fanout_test::until_asleep(closer);
    std::thread entering([&] {
      enterer = fanout_test::this_thread();
      gate.enter();
      gate.leave();
    });
    fanout_test::until_asleep(enterer);
    CHECK(use_in_child() == 0);
    gate.leave();
    closing.join();
    entering.join();
  }
  gate.close();  // the parent's gate is as it was
  gate.open();
}

TEST_CASE("one who forks inside has nothing to leave in the child") {
  Gate gate;
  gate.enter();
  CHECK(in_child([&] {
          gate.leave();
          gate.close();
          gate.open();
          return 0;
        }) == 0);
  CHECK(in_child([&] {
          gate.enter();  // a call inside the one that forked
          gate.leave();
          gate.leave();
          gate.close();
          gate.open();
          gate.enter();
          return 0;
        }) == 0);
  CHECK(in_child([&] {
          gate.close();  // as another thread of the child might
          gate.leave();
          gate.open();
          gate.close();
          gate.open();
          return 0;
        }) == 0);
  gate.leave();
  gate.close();
  CHECK(in_child([&] {
          gate.enter();
          gate.leave();
          gate.open();
          gate.close();
          return 0;
        }) == 0);
  gate.open();
}

TEST_CASE("EnteredGate is inside, and ClosedGate alone, for as long as they live") {
  Gate gate;
  std::atomic<int> closer{0};
  std::atomic<bool> alone{false};
  std::thread closing;
  {
    const fanout::detail::EnteredGate inside(gate, false);
    closing = std::thread([&] {
      closer = fanout_test::this_thread();
      const fanout::detail::ClosedGate closed(gate);
      alone = true;
    });
    fanout_test::until_asleep(closer);
    const fanout::detail::EnteredGate nested(gate, true);  // though somebody waits
    CHECK_FALSE(alone);
  }
  closing.join();
  CHECK(alone);
  gate.close();
  gate.open();
}

TEST_CASE("one who forks with a ClosedGate does not open what another closed in the child") {
  if (!fanout_test::can_fork) return fanout_test::skip(fanout_test::cannot_fork);
  Gate gate;
  std::optional<fanout::detail::ClosedGate> closed(std::in_place, gate);
  CHECK(in_child([&] {
          gate.close();  // as another thread of the child might
          closed.reset();
          std::atomic<int> number{0};
          std::atomic<bool> entered{false};
          std::thread enterer([&] {
            number = fanout_test::this_thread();
            gate.enter();
            entered = true;
            gate.leave();
          });
          fanout_test::until_asleep(number);
          const bool too_early = entered;
          gate.open();
          enterer.join();
          return too_early ? 1 : 0;
        }) == 0);
}

TEST_CASE("one who waits to be alone helps those inside, also with what comes later") {
  Gate gate;
  gate.enter();
  std::atomic<int> number{0};
  std::atomic<int> work{1};  // that those inside wait for
  std::atomic<bool> alone{false};
  std::thread closer([&] {
    number = fanout_test::this_thread();
    const fanout::detail::ClosedGate closed(gate, [&]() noexcept { work = 0; });
    alone = true;
  });
  fanout_test::until_asleep(number);
  CHECK(work == 0);
  work = 1;
  gate.remind();
  while (work == 1) std::this_thread::yield();
  CHECK_FALSE(alone);
  gate.leave();
  closer.join();
  CHECK(alone);
  gate.enter();
  gate.remind();  // there is nobody
  gate.leave();
}
