// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/worker/registry.hpp>

#include "support/asleep.hpp"
#include "support/fork.hpp"
#include "support/message_of.hpp"
#include "support/skip.hpp"

using fanout::Error;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Pending;
using fanout::ReplicaError;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::until;

namespace {

using Hosts = fanout::DeviceSet<fanout::HostDevice>;
using Rows = std::span<const int>;

/// Devices without threads: what is posted to them runs where somebody helps.
Hosts without_threads(int count) {
  std::vector<fanout::HostDevice> devices;
  for (int i = 0; i < count; ++i) {
    devices.emplace_back(fanout::backend::registry().worker({.kind = "idle", .index = i}, {}, false));
  }
  return Hosts(std::move(devices));
}

long sum_of(Rows batch) { return std::accumulate(batch.begin(), batch.end(), 0L); }

template <class Tensor>
long total(const Tensor& per_shard) {
  return std::accumulate(per_shard.begin(), per_shard.end(), 0L);
}

struct Sum {
  long forward(Rows batch) const { return sum_of(batch); }
};

/// Which calls it has seen, and in which order: the first row says which one it is.
struct Seen {
  std::vector<int> calls;
  std::vector<int> forward(Rows batch, bool tell) {
    if (tell) return calls;
    calls.push_back(batch[0]);
    return {};
  }
};

const std::vector<int> batch = {1, 2, 3, 4};

/// What the child of a fork is told of a call that the parent made.
const std::string forked =
    "the process was forked while a call was pending at the child: expected its result to be taken before the fork, or "
    "in the parent, found shards that run in the parent only";

}  // namespace

TEST_CASE("an asynchronous call gives what a call gives, with one device and with more, with threads and without") {
  for (const Hosts& devices : {host_devices(1), host_devices(2), host_devices(3), without_threads(2)}) {
    const ParallelModel model{Sum{}, devices};
    Pending<fanout::Tensor<long, 1>> pending = model.async(batch);
    CHECK(pending.valid());
    const auto sums = pending.get();
    CHECK_FALSE(pending.valid());
    const auto same = model(batch);
    CHECK(std::vector<long>(sums.begin(), sums.end()) == std::vector<long>(same.begin(), same.end()));
  }
}

TEST_CASE("an asynchronous call may return nothing and split nothing") {
  std::atomic<int> runs{0};
  const ParallelModel model{[&runs](int x) { runs += x; }, host_devices(2)};
  model.async(5).get();
  CHECK(runs == 5);
}

TEST_CASE("an asynchronous call does not wait for forward, and is ready when all shards have ended") {
  std::atomic<bool> go{false};
  const ParallelModel model{[&go](Rows part) {
                              until(go);
                              return sum_of(part);
                            },
                            host_devices(2)};
  auto pending = model.async(batch);
  auto other = model.async(batch);
  CHECK_FALSE(pending.ready());
  go = true;
  while (!pending.ready()) std::this_thread::yield();
  CHECK(total(pending.get()) == 10);
  other.wait();
  CHECK(other.ready());
  CHECK(total(other.get()) == 10);
}

TEST_CASE("taking a result runs its own call, and first the earlier ones if calls keep their order") {
  std::vector<int> ran;
  const auto note = [&ran](Rows part) { ran.push_back(part[0]); };
  const auto take_second = [&ran](const auto& model) {
    ran.clear();
    auto first = model.async(std::vector{1});
    auto second = model.async(std::vector{2});
    CHECK(ran.empty());
    second.get();
    const std::vector<int> after_second = ran;
    first.get();
    CHECK(ran.size() == 2);
    return after_second;
  };
  CHECK(take_second(ParallelModel{note, without_threads(1)}) == std::vector{2});
  CHECK(take_second(ParallelModel{[note](Rows part) mutable { note(part); }, without_threads(1)}) == std::vector{1, 2});
}

TEST_CASE("an asynchronous call moves rvalues and borrows lvalues, without a copy") {
  const ParallelModel model{[](Rows part) { return std::vector{part.data()}; }, without_threads(1)};
  std::vector<int> mine = {1, 2};
  CHECK(model.async(mine).get() == std::vector<const int*>{mine.data()});
  const int* const data = mine.data();
  auto pending = model.async(std::move(mine));
  CHECK(mine.empty());
  mine = {3, 4};
  CHECK(pending.get() == std::vector<const int*>{data});

  const auto owned = std::make_shared<const int>(5);
  const ParallelModel reads{[](const std::shared_ptr<const int>& x, const std::unique_ptr<int>& y) { return *x + *y; },
                            host_devices(1)};
  {
    auto kept = reads.async(std::shared_ptr<const int>(owned), std::make_unique<int>(2));
    CHECK(owned.use_count() == 2);
    CHECK(kept.get()[0] == 7);
    CHECK(owned.use_count() == 1);  // with the result, the arguments go
  }
}

TEST_CASE("an exception of a call is thrown by get, and the model works afterwards") {
  ParallelModel model{[](Rows part, Rows, bool fail) {
                        if (fail) throw std::runtime_error("in forward");
                        return sum_of(part);
                      },
                      host_devices(2)};
  auto wrong_rows = model.async(batch, std::vector{1}, false);
  CHECK(wrong_rows.ready());
  CHECK_THROWS_AS(wrong_rows.get(), fanout::ShapeMismatch);
  auto fails = model.async(batch, batch, true);
  fails.wait();
  CHECK_THROWS_AS(fails.get(), ReplicaError);
  CHECK_FALSE(fails.valid());
  model.update([&](auto&) {
    CHECK(message_of<Error>([&] { model.async(batch, batch, false).get(); }).find("inside its own update") !=
          std::string::npos);
  });
  CHECK(total(model.async(batch, batch, false).get()) == 10);
}

TEST_CASE("a result can be taken once, from the Pending that owns it") {
  const ParallelModel model{Sum{}, host_devices(2)};
  auto first = model.async(batch);
  auto second = std::move(first);
  CHECK_FALSE(first.valid());
  CHECK_THROWS_AS(first.get(), Error);
  CHECK_THROWS_AS(first.wait(), Error);
  CHECK_THROWS_AS(first.ready(), Error);
  CHECK(total(second.get()) == 10);
  CHECK_THROWS_AS(second.get(), Error);
  second = model.async(batch);
  second = model.async(std::vector{5});
  CHECK(total(second.get()) == 5);
}

TEST_CASE("the destructor of a Pending waits for the call") {
  for (const Hosts& devices : {host_devices(2), without_threads(2)}) {
    std::atomic<long> sum{0};
    const ParallelModel model{[&sum](Rows part) { sum += sum_of(part); }, devices};
    { const auto pending = model.async(std::vector(batch)); }
    CHECK(sum == 10);
  }
}

TEST_CASE("move assignment to a Pending waits for its call and destroys its arguments") {
  for (const Hosts& devices : {host_devices(2), without_threads(2)}) {
    std::atomic<long> sum{0};
    const auto owned = std::make_shared<const int>(5);
    const auto add = [&sum](Rows part, const std::shared_ptr<const int>&) { sum += sum_of(part); };
    const ParallelModel model{add, devices};
    auto pending = model.async(std::vector(batch), std::shared_ptr<const int>(owned));
    const auto one_more = [&] { return model.async(std::vector(batch), std::shared_ptr<const int>(owned)); };
    CHECK(owned.use_count() == 2);

    auto other = one_more();
    CHECK(owned.use_count() == 3);
    pending = std::move(other);  // waits for the first
    CHECK(sum >= 10);
    CHECK(owned.use_count() == 2);
    CHECK(pending.valid());
    CHECK_FALSE(other.valid());

    pending = std::move(other);  // which has none: waits all the same
    CHECK(sum == 20);
    CHECK(owned.use_count() == 1);
    CHECK_FALSE(pending.valid());

    pending = one_more();  // over one that has none
    Pending<void>& same = pending;
    pending = std::move(same);
    CHECK(pending.valid());
    CHECK(owned.use_count() == 2);
    pending.get();
    CHECK(sum == 30);
    CHECK(owned.use_count() == 1);

    std::vector<Pending<void>> several;
    for (int i = 0; i < 4; ++i) several.push_back(one_more());
    several.erase(several.begin());  // the others are moved over it
    CHECK(sum >= 40);
    CHECK(owned.use_count() == 4);
    several.clear();
    CHECK(sum == 70);
    CHECK(owned.use_count() == 1);
  }
}

TEST_CASE("an update first runs or waits for all earlier calls, which do not see it") {
  struct Scaled {
    long factor = 1;
    long forward(Rows part) const { return factor * sum_of(part); }
  };
  for (const Hosts& devices : {host_devices(2), without_threads(2)}) {
    ParallelModel model{Scaled{}, devices};
    for (int i = 0; i < 50; ++i) {
      model.update([](Scaled& m) { m.factor = 1; });
      auto before = model.async(batch);
      model.update([](Scaled& m) { m.factor = 3; });
      auto after = model.async(batch);
      CHECK(before.ready());
      CHECK(total(before.get()) == 10);
      CHECK(total(after.get()) == 30);
    }
  }
}

TEST_CASE("an update that already waits runs calls made inside another model's forward") {
  std::atomic<bool> inside{false};
  std::atomic<bool> go{false};
  ParallelModel inner{[&](Rows part, bool waits) {
                        if (waits) inside = true;
                        if (waits) until(go);
                        return sum_of(part);
                      },
                      without_threads(1)};
  const ParallelModel outer{[&](Rows part) {
                              auto pending = inner.async(part, false);
                              while (!pending.ready()) std::this_thread::yield();  // helped by nobody but the update
                              return total(pending.get());
                            },
                            host_devices(1)};
  std::thread keeps_the_gate([&] { inner(batch, true); });
  until(inside);
  std::atomic<int> updater{0};
  std::thread updates([&] {
    updater = fanout_test::this_thread();
    inner.update([](auto&) {});
  });
  fanout_test::until_asleep(updater);
  CHECK(total(outer(batch)) == 10);
  go = true;
  keeps_the_gate.join();
  updates.join();
}

TEST_CASE("results may be taken when the model is moved or gone") {
  for (const Hosts& devices : {host_devices(2), without_threads(2)}) {
    std::optional<ParallelModel<Sum, Hosts>> model{std::in_place, Sum{}, devices};
    auto moved = model->async(std::vector(batch));
    std::optional<ParallelModel<Sum, Hosts>> other{std::move(*model)};
    auto gone = other->async(std::vector(batch));
    auto never = other->async(std::vector(batch));
    CHECK(total(moved.get()) == 10);
    other.reset();
    model.reset();
    CHECK(gone.ready());
    CHECK(total(gone.get()) == 10);
  }
}

// ---- order -----------------------------------------------------------------------------------------

TEST_CASE("each replica runs calls in the order they were made, however the results are taken") {
  constexpr int calls = 12;
  for (const Hosts& devices : {host_devices(1), host_devices(3), without_threads(2)}) {
    for (int round = 0; round < 60; ++round) {
      const ParallelModel model{Seen{}, devices};
      std::vector<std::optional<Pending<std::vector<int>>>> pending;
      std::vector<int> order;
      for (int i = 0; i < calls; ++i) {
        order.push_back(i);
        if (round % 4 == 3 && i % 5 == 4) {
          (void)model(std::vector(3, i), false);
          pending.emplace_back();
        } else {
          pending.push_back(model.async(std::vector(3, i), false));
        }
      }
      std::thread helper([&] {
        if (round % 2 == 1 && pending[3]) (void)pending[3]->get();
      });
      for (int i = calls; i > 0; --i) {
        auto& one = pending[static_cast<std::size_t>(i - 1)];
        if (i - 1 != 3 && one && i % 3 != 0) (void)one->get();
      }
      helper.join();
      const std::vector<int> seen = model(std::vector(devices.size(), 0), true);
      std::vector<int> expected;
      for (std::size_t device = 0; device < devices.size(); ++device) {
        expected.insert(expected.end(), order.begin(), order.end());
      }
      CHECK(seen == expected);
    }
  }
}

TEST_CASE("several shards of one device and calls of other shapes keep their order too") {
  struct InTurn {
    std::size_t page;
    fanout::Plan operator()(std::size_t n, std::size_t devices) const {
      fanout::Plan plan;
      for (std::size_t i = 0; i < n; i += page) plan.add({.rows = {i, i + page}, .device = plan.size() % devices});
      if (n == 0) plan.add({});
      return plan;
    }
  };
  const ParallelModel model{Seen{}, host_devices(2), fanout::Options{.split = InTurn{1}}};
  std::vector<Pending<std::vector<int>>> pending;
  for (int i = 0; i < 40; ++i)
    pending.push_back(model.async(std::vector(static_cast<std::size_t>(i % 5 + 1), i), false));
  pending.erase(pending.begin() + 20, pending.begin() + 25);
  const std::vector<int> seen = model(std::vector{0, 0}, true);
  CHECK(seen.size() == 8 * (1 + 2 + 3 + 4 + 5));
  int previous = 0;
  int starts = 0;
  for (const int call : seen) {
    starts += call < previous ? 1 : 0;
    previous = call;
  }
  CHECK(starts == 1);  // where the second device's begin
}

TEST_CASE("a const forward of a factory's model sees what earlier calls have changed") {
  struct Counter {
    int value = 0;
    void forward(int add) { value += add; }
    int forward(Rows) const { return value; }
  };
  for (int round = 0; round < 50; ++round) {
    const ParallelModel model{fanout::factory([] { return Counter{}; }), host_devices(1)};
    auto two = model.async(2);
    auto three = model.async(3);
    if (round % 2 == 0) CHECK(model(batch)[0] == 5);
    CHECK(model.async(batch).get()[0] == 5);
    three.get();
  }
}

TEST_CASE("fields that are combined after each call are combined before the next one begins") {
  struct Counts {
    fanout::Sum<long> rows_seen{};
    std::vector<long> forward(Rows part) {
      const long before = rows_seen.value;
      if (part.size() == 1) throw std::runtime_error("one row");
      rows_seen.value += static_cast<long>(part.size());
      return {before};
    }
    long forward(int) const { return rows_seen.value; }
  };
  for (const Hosts& devices : {host_devices(2), without_threads(2)}) {
    ParallelModel model{Counts{}, devices};
    std::vector<Pending<std::vector<long>>> pending;
    for (int i = 0; i < 10; ++i) pending.push_back(model.async(batch));
    auto fails = model.async(std::vector{1, 2});
    CHECK(model(0)[0] == 40);
    CHECK_THROWS_AS(fails.get(), ReplicaError);
    for (long i = 10; i > 0; --i) {
      CHECK(pending[static_cast<std::size_t>(i - 1)].get() == std::vector<long>(2, 4 * (i - 1)));
    }
    auto more = model.async(batch);
    model.update([](Counts& counts) { counts.rows_seen.value *= 10; });
    CHECK(model.async(7).get()[0] == 440);
    CHECK(more.get()[0] == 40);
  }
}

TEST_CASE("an asynchronous call may use on_all and inout") {
  const ParallelModel everywhere{[](int x) { return x; }, host_devices(3)};
  CHECK(total(everywhere.async(fanout::on_all(), 2).get()) == 6);
  fanout::Tensor<int, 1> mine(4);
  const ParallelModel fill{[](fanout::View<int, 1> x) {
                             for (int& one : x) one = 7;
                           },
                           host_devices(2)};
  fill.async(fanout::inout(mine)).get();
  CHECK(total(mine) == 28);
}

TEST_CASE("random numbers follow the order in which the calls were made") {
  const auto draw = [](fanout::Context auto& ctx, Rows part) {
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < part.size(); ++i) numbers.push_back(ctx.random(i)());
    return numbers;
  };
  const ParallelModel one{draw, host_devices(2)};
  const ParallelModel other{draw, host_devices(3)};
  const auto first = one(batch);
  const auto second = one(batch);
  auto a = other.async(batch);
  auto b = other.async(batch);
  CHECK(b.get() == second);
  CHECK(a.get() == first);
}

// ---- nested ----------------------------------------------------------------------------------------

TEST_CASE("a forward can call other models, and its own if it is const, asynchronously") {
  for (const Hosts& devices : {host_devices(1), host_devices(3), without_threads(2)}) {
    const ParallelModel inner{[last = 0L](Rows part) mutable {
                                last = sum_of(part);
                                return last;
                              },
                              host_devices(2)};
    struct Outer {
      const ParallelModel<Outer, Hosts>* const* self;
      decltype(inner)* other;
      long forward(Rows part, int depth) const {
        if (depth == 0) return sum_of(part);
        auto theirs = other->async(part);
        auto ours = (**self).async(part, depth - 1);
        const auto never_taken = other->async(part);
        return total(theirs.get()) + total(ours.get());
      }
    };
    const ParallelModel<Outer, Hosts>* self = nullptr;
    const ParallelModel<Outer, Hosts> outer{Outer{&self, &inner}, devices};
    self = &outer;
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i) {
          auto one = outer.async(batch, 2);
          wrong += total(outer(batch, 2)) == 30 ? 0 : 1;
          wrong += total(one.get()) == 30 ? 0 : 1;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("a non-const forward that calls its own model, or waits for a later call of it, is refused") {
  struct Recursive {
    ParallelModel<Recursive, Hosts>* const* self;
    std::optional<Pending<fanout::Tensor<long, 1>>>* const* later;
    long forward(Rows part, int what) {
      if (what == 1) return total((**self).async(part, 0).get());
      if (what == 2) return total((**later)->get());
      return sum_of(part);
    }
  };
  ParallelModel<Recursive, Hosts>* self = nullptr;
  std::optional<Pending<fanout::Tensor<long, 1>>> later;
  auto* const to_later = &later;
  ParallelModel<Recursive, Hosts> model{Recursive{&self, &to_later}, without_threads(1)};
  self = &model;
  const auto refused = [](auto&& pending) {
    try {
      (void)pending.get();
    } catch (const ReplicaError& error) {
      return error.get_if<Error>() != nullptr;
    }
    return false;
  };
  CHECK(refused(model.async(batch, 1)));
  auto waits = model.async(batch, 2);
  later = model.async(batch, 0);
  CHECK(refused(waits));
  CHECK(total(later->get()) == 10);
  CHECK(total(model(batch, 0)) == 10);
}

TEST_CASE("a call made inside a forward may be taken after it, and an update waits for it") {
  struct Scaled {
    long factor = 1;
    long forward(Rows part) const { return factor * sum_of(part); }
  };
  ParallelModel inner{Scaled{}, without_threads(1)};
  std::optional<Pending<fanout::Tensor<long, 1>>> kept;
  const ParallelModel outer{[&](Rows part) { kept = inner.async(std::vector(part.begin(), part.end())); },
                            host_devices(1)};
  outer(batch);
  CHECK_FALSE(kept->ready());
  inner.update([](Scaled& m) { m.factor = 2; });
  CHECK(kept->ready());
  CHECK(total(kept->get()) == 10);
}

// ---- threads and forks -----------------------------------------------------------------------------

TEST_CASE("many threads make calls of one model and take each other's results, while it is updated") {
  for (const bool threads_of_devices : {true, false}) {
    struct Pair {
      long a = 0, b = 0;
      std::pair<long, long> forward(Rows) { return {a, b}; }
    };
    using Result = decltype(std::declval<const ParallelModel<Pair, Hosts>&>().async(batch));
    ParallelModel model{Pair{}, threads_of_devices ? host_devices(2) : without_threads(2)};
    std::array<std::atomic<Result*>, 4> exchange{};
    std::atomic<int> torn{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < 150; ++i) {
          const std::unique_ptr<Result> other(
              exchange[(i + t) % 4].exchange(new Result(model.async(std::vector(batch)))));
          if (other == nullptr) continue;
          const auto [a, b] = other->get();
          torn += a[0] == b[0] && a[1] == b[1] && a[0] == a[1] ? 0 : 1;
        }
      });
    }
    for (int i = 0; i < 100; ++i) {
      model.update([](Pair& m) {
        ++m.a;
        std::this_thread::yield();
        ++m.b;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (auto& left : exchange) delete left.exchange(nullptr);
    CHECK(torn == 0);
  }
}

TEST_CASE("in the child of a fork a result that was pending is an error, and the model works") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  for (const bool keeps_order : {false, true}) {
    std::atomic<bool> go{false};
    std::atomic<int> inside{0};
    const auto forward = [&](Rows part) {
      ++inside;
      until(go);
      return sum_of(part);
    };
    const auto check = [&](auto& model) {
      auto pending = model.async(batch);
      auto queued = model.async(batch);
      while (inside < 2) std::this_thread::yield();
      CHECK(fanout_test::in_child([&] {
              go = true;
              if (!pending.ready()) return 1;
              if (message_of<Error>([&] { pending.wait(); }) != forked) return 2;
              if (message_of<Error>([&] { queued.get(); }) != forked) return 3;
              { const auto goes = std::move(pending); }
              model.update([](auto&) {});
              auto again = model.async(batch);
              if (total(model(batch)) != 10) return 4;
              return total(again.get()) == 10 ? 0 : 5;
            }) == 0);
      go = true;
      CHECK(total(pending.get()) == 10);
      CHECK(total(queued.get()) == 10);
    };
    if (keeps_order) {
      ParallelModel model{[&forward](Rows part) mutable { return forward(part); }, host_devices(2)};
      check(model);
    } else {
      ParallelModel model{forward, host_devices(2)};
      check(model);
    }
  }
}

TEST_CASE("after a fork in a shard that get runs, only the child's call fails") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  pid_t child = -1;
  bool go = true;
  ParallelModel model{[&](Rows part) mutable {
                        if (std::exchange(go, false)) child = ::fork();
                        return sum_of(part);
                      },
                      without_threads(2)};
  auto pending = model.async(batch);
  auto later = model.async(batch);
  std::string message;
  long sum = 0;
  try {
    sum = total(pending.get());
  } catch (const Error& error) {
    message = error.what();
  }
  if (child == 0) {
    fanout_test::child_ends_with([&] {
      if (message != forked) return 1;
      if (message_of<Error>([&] { later.get(); }) != forked) return 2;
      return total(model(batch)) == 10 ? 0 : 3;
    });
  }
  CHECK(message.empty());
  CHECK(sum == 10);
  CHECK(total(later.get()) == 10);
  CHECK(fanout_test::exit_code_of(child) == 0);
}

namespace {

/// Its asynchronous calls are one task each, since its field is combined after them.
struct CallsBack {
  const std::function<void()>* back;
  fanout::Sum<int> calls;
  void forward(Rows) {
    ++calls.value;
    (*back)();
  }
};

}  // namespace

TEST_CASE("a one-shard asynchronous call knows the call it was made in, whichever thread runs it") {
  std::function<void()> back;
  const ParallelModel inner{CallsBack{&back, {}}, host_devices(2)};
  std::string said;
  const ParallelModel outer{[&inner, &said, calls = 0](Rows) mutable {
                              if (++calls > 1) return;
                              auto pending = inner.async(std::vector{1});
                              while (!pending.ready()) std::this_thread::yield();
                              said = message_of<Error>([&pending] { pending.get(); });
                            },
                            host_devices(1)};
  back = [&outer] { outer(std::vector{1}); };
  outer(std::vector{1});
  CHECK(says(said, "was called from inside its own forward"));
}
