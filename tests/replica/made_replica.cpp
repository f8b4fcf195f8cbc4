// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
//
// Calls of models that a factory made.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/asleep.hpp"
#include "support/fork.hpp"
#include "support/meeting.hpp"
#include "support/message_of.hpp"
#include "support/skip.hpp"

using fanout::factory;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout_test::Meeting;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Rows = std::span<const int>;

/// Counts its own calls.
struct Counter {
  Counter() = default;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  int forward(Rows) { return ++calls; }
  int calls = 0;
};

/// Calls the model that it is in, in one of the four ways.
struct Calls {
  std::function<int(bool)>* again;
  int forward(Rows, bool inner_writes) const { return (*again)(inner_writes); }
  int forward(std::string_view, bool inner_writes) { return (*again)(inner_writes); }
  int forward(Rows) const { return 1; }
  int forward(std::string_view) { return 1; }
};

template <class Tensor>
std::vector<int> listed(const Tensor& values) {
  return {values.begin(), values.end()};
}

const std::vector<int> five{0, 1, 2, 3, 4};

}  // namespace

TEST_CASE("changes by a non-const forward stay, separately on each device") {
  const ParallelModel model{factory([] { return Counter(); }), host_devices(2)};
  CHECK(listed(model(five)) == std::vector{1, 1});
  CHECK(listed(model(std::vector{1})) == std::vector{2});
  CHECK(listed(model(five)) == std::vector{3, 2});
  CHECK(model.replica(0).model().calls == 3);
}

TEST_CASE("calls of a non-const forward take turns at each replica") {
  const ParallelModel model{factory([] { return Counter(); }), host_devices(2)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&model] {
      for (int i = 0; i < 200; ++i) static_cast<void>(model(five));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(model.replica(0).model().calls == 800);
  CHECK(model.replica(1).model().calls == 800);
}

TEST_CASE("calls of a const forward are inside at the same time") {
  Meeting both(2);
  struct Waits {
    Meeting* rendezvous;
    int forward(Rows) const {
      rendezvous->come();
      return 1;
    }
  };
  const ParallelModel model{factory([&both] { return Waits{&both}; }), host_devices(1)};
  std::thread other([&model] { static_cast<void>(model(five)); });
  CHECK(model(five)[0] == 1);
  other.join();
}

TEST_CASE("a non-const forward runs alone, even if the model also has a const one") {
  struct Mixed {
    int written = 0;
    std::atomic<int> writing = 0;
    mutable std::atomic<int> reading = 0;
    int forward(Rows, int) {  // not const
      const bool alone = ++writing == 1 && reading == 0;
      ++written;
      std::this_thread::yield();
      --writing;
      return alone ? 1 : 0;
    }
    int forward(Rows) const {
      ++reading;
      const bool right = writing == 0;
      std::this_thread::yield();
      --reading;
      return right ? 1 : 0;
    }
  };
  const ParallelModel model{factory([] { return Mixed{}; }), host_devices(2)};
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        for (const int right : t % 2 == 0 ? model(five) : model(five, 1)) wrong += 1 - right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(model.replica(0).model().written == 400);
}

TEST_CASE("a call inside its own forward ends, or is an error if it would wait for itself") {
  std::function<int(bool)> again;
  const ParallelModel model{factory([&again] { return Calls{&again}; }), host_devices(2)};
  again = [&model](bool writes) { return writes ? model(std::string_view())[0] : model(five)[0]; };
  CHECK(listed(model(five, false)) == std::vector{1, 1});
  const char* const words = "a model with a non-const forward was called from inside its own forward";
  CHECK(says(message_of<fanout::ReplicaError>([&] { static_cast<void>(model(five, true)); }), words));
  CHECK(says(message_of<fanout::ReplicaError>([&] { static_cast<void>(model(std::string_view(), false)); }), words));
  CHECK(says(message_of<fanout::ReplicaError>([&] { static_cast<void>(model(std::string_view(), true)); }), words));
  CHECK(listed(model(five)) == std::vector{1, 1});
  CHECK(listed(model(std::string_view())) == std::vector{1});
}

TEST_CASE("a const forward may call its own model while a non-const call waits for it") {
  std::function<int(bool)> again;
  const ParallelModel model{factory([&again] { return Calls{&again}; }), host_devices(1)};
  std::atomic<int> waiting = 0;
  std::thread writer;
  again = [&](bool) {
    writer = std::thread([&] {
      waiting = fanout_test::this_thread();
      static_cast<void>(model(std::string_view()));
    });
    fanout_test::until_asleep(waiting);
    return model(five)[0];
  };
  CHECK(listed(model(five, false)) == std::vector{1});
  writer.join();
}

TEST_CASE("a forward that throws leaves its replica to the next call") {
  struct Fails {
    int forward(Rows x) const { return x[0] < 0 ? throw std::runtime_error("const") : x[0]; }
    int forward(Rows x, int) { return x[0] < 0 ? throw std::runtime_error("not const") : x[0]; }
  };
  const ParallelModel model{factory([] { return Fails{}; }), host_devices(2)};
  const std::vector<int> bad(4, -1);
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(model(bad), fanout::ReplicaError);
    CHECK_THROWS_AS(model(bad, 1), fanout::ReplicaError);
  }
  CHECK(model(five)[1] == 3);
  CHECK(model(five, 1)[1] == 3);
}

TEST_CASE("models of a factory work in the child of a fork, and after a fork inside forward") {
  if (!fanout_test::can_fork) return fanout_test::skip(fanout_test::cannot_fork);
  struct Forks {
    int forward(Rows) {
      return fanout_test::in_child([] { return 4; });
    }
    int forward(Rows, int) { return 5; }
  };
  const ParallelModel model{factory([] { return Forks{}; }), host_devices(1)};
  CHECK(model(five)[0] == 4);
  CHECK(model(five, 1)[0] == 5);
  CHECK(fanout_test::in_child([&model] { return model(five, 1)[0]; }) == 5);
}
