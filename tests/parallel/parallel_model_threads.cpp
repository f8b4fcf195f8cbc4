// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include <fanout/device/host_device.hpp>
#include <fanout/parallel/parallel_model.hpp>

#include "support/asleep.hpp"
#include "support/fork.hpp"
#include "support/meeting.hpp"
#include "support/skip.hpp"

using fanout::DeviceSet;
using fanout::Error;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::ParallelModel;
using fanout::ReplicaError;
using fanout_test::Meeting;

namespace {

using Hosts = DeviceSet<HostDevice>;
using Rows = std::span<const int>;

std::vector<int> count_to(int n) {
  std::vector<int> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 1);
  return rows;
}

long sum_of_rows(Rows rows) { return std::accumulate(rows.begin(), rows.end(), 0L); }

template <class Tensor>
long total_of(const Tensor& per_shard) {
  long sum = 0;
  for (std::size_t i = 0; i < per_shard.extent(0); ++i) sum += per_shard(i);
  return sum;
}

/// Waits until an earlier call has left the device.
void wait_for(const HostDevice& device) {
  device.worker().handoff().lock();
  device.worker().handoff().unlock();
}

/// Runs f on this many threads at once.
template <class F>
void on_threads(int count, const F& f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&f, t] { f(t); });
  for (std::thread& thread : threads) thread.join();
}

/// A model that is a function object, so that it can be tied to things that are made after it.
template <class Result, class... Args>
struct Calls {
  std::function<Result(Args...)> f;
  Result forward(const Args&... args) const { return f(args...); }
};

/// Whether the call throws an E, as itself or as what a replica threw, and says so.
template <class E, class F>
bool throws_inside(const F& f, const char* words) {
  try {
    f();
  } catch (const ReplicaError& error) {
    const E* inner = error.get_if<E>();
    return inner != nullptr && std::string(error.what()).find(words) != std::string::npos;
  } catch (...) {
  }
  return false;
}
template <class E, class F>
bool throws(const F& f, const char* words) {
  try {
    f();
  } catch (const E& error) {
    return std::string(error.what()).find(words) != std::string::npos;
  } catch (...) {
  }
  return false;
}

}  // namespace

// ---- nested calls ----------------------------------------------------------------------------------

namespace {

/// Calls itself, as deep as the caller says, with its own rows.
struct Recursive {
  const ParallelModel<Recursive, Hosts>* const* self;
  long forward(Rows rows, int depth) const {
    if (depth == 0) return sum_of_rows(rows);
    return total_of((**self)(std::vector<int>(rows.begin(), rows.end()), depth - 1));
  }
};

}  // namespace

TEST_CASE("a const model can be called from inside its own forward, three deep, from four threads at once") {
  for (const int devices : {1, 2, 3}) {
    CAPTURE(devices);
    const ParallelModel<Recursive, Hosts>* self = nullptr;
    const ParallelModel<Recursive, Hosts> model{Recursive{&self}, host_devices(devices)};
    self = &model;
    const std::vector<int> rows = count_to(17);
    for (const int depth : {0, 1, 2, 3}) CHECK(total_of(model(rows, depth)) == 153);
    std::atomic<int> wrong{0};
    on_threads(4, [&](int) {
      for (int i = 0; i < 25; ++i) wrong += total_of(model(rows, 3)) == 153 ? 0 : 1;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE(
    "models on the same, overlapping and other sets can call one another, three deep, from four threads at once") {
  const Hosts all = host_devices(3);
  const auto pick = [&all](std::initializer_list<std::size_t> positions) {
    std::vector<HostDevice> devices;
    for (const std::size_t i : positions) devices.push_back(all[i]);
    return Hosts(std::move(devices));
  };
  const std::vector<Hosts> sets = {all, pick({1, 0}), pick({2, 1}), pick({0}), host_devices(2), host_devices(7)};
  for (const Hosts& outer_set : sets) {
    for (const Hosts& inner_set : sets) {
      const ParallelModel leaf{[](Rows rows) { return sum_of_rows(rows); }, all};
      const ParallelModel inner{[&leaf](Rows rows) { return total_of(leaf(rows)); }, inner_set};
      const ParallelModel outer{[&inner](Rows rows) { return total_of(inner(rows)); }, outer_set};
      const std::vector<int> rows = count_to(20);
      std::atomic<int> wrong{0};
      on_threads(4, [&](int) {
        for (int i = 0; i < 5; ++i) wrong += total_of(outer(rows)) == 210 ? 0 : 1;
      });
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("hundreds of random patterns of models that call models end and give right sums") {
  struct Node {
    std::vector<std::optional<ParallelModel<Calls<long, Rows, int, std::uint64_t>, Hosts>>> models;
  } node;
  node.models.resize(5);
  const auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  };
  const auto forward = [&node, mix](Rows rows, int depth, std::uint64_t seed) {
    const std::uint64_t random = mix(seed + static_cast<std::uint64_t>(rows.empty() ? 0 : rows[0]));
    if (depth == 0 || random % 5 == 0) return sum_of_rows(rows);
    const auto& next = *node.models[random % node.models.size()];
    return total_of(next(rows, depth - 1, random));
  };
  for (std::size_t i = 0; i < node.models.size(); ++i) {
    node.models[i].emplace(Calls<long, Rows, int, std::uint64_t>{forward}, host_devices(static_cast<int>(i % 4) + 1));
  }
  const std::vector<int> rows = count_to(9);
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::atomic<int> wrong{0};
    on_threads(2, [&](int t) {
      const std::uint64_t random = mix(seed * 2 + static_cast<std::uint64_t>(t));
      const auto& model = *node.models[random % node.models.size()];
      wrong += total_of(model(rows, 3, random)) == 45 ? 0 : 1;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("seven devices on fewer cores give right results, from four threads at once") {
  const ParallelModel model{[](Rows rows) { return sum_of_rows(rows); }, host_devices(7)};
  std::atomic<int> wrong{0};
  on_threads(4, [&](int) {
    for (int n = 0; n < 60; ++n) wrong += total_of(model(count_to(n))) == n * (n + 1L) / 2 ? 0 : 1;
  });
  CHECK(wrong == 0);
}

TEST_CASE("a call ends though devices are held by others: its caller runs their shards") {
  const Hosts devices = host_devices(2);
  std::array<std::thread::id, 2> threads;
  const ParallelModel model{[&threads](fanout::Context auto& ctx, Rows rows) {
                              threads[ctx.rank()] = std::this_thread::get_id();
                              return sum_of_rows(rows);
                            },
                            devices};
  for (const auto& held : {std::vector<std::size_t>{0}, {1}, {0, 1}, {}}) {
    for (const std::size_t i : held) devices[i].worker().handoff().lock();
    CHECK(total_of(model(count_to(10))) == 55);
    for (const std::size_t i : held) {
      CHECK(threads[i] == std::this_thread::get_id());
      devices[i].worker().handoff().unlock();
    }
  }
}

TEST_CASE("the main device's shard runs on the calling thread if the device is free") {
  const Hosts devices = host_devices({.count = 3, .wait = fanout::Park{}});  // no call runs inline
  const std::thread::id caller = std::this_thread::get_id();
  const ParallelModel model{[&](fanout::Context auto& ctx, Rows) {
                              if (ctx.rank() != 0) return 0;
                              const bool free = devices[0].worker().handoff().try_lock();
                              if (free) devices[0].worker().handoff().unlock();
                              return !free && std::this_thread::get_id() == caller ? 1 : 0;
                            },
                            devices};
  for (int call = 0; call < 50; ++call) {
    wait_for(devices[0]);
    CHECK(model(count_to(3))(0) == 1);
  }
  CHECK(devices[0].worker().handoff().try_lock());
  devices[0].worker().handoff().unlock();
}

TEST_CASE("all devices run at the same time") {
  for (const int count : {2, 3, 7}) {
    Meeting* rendezvous = nullptr;  // hangs unless each shard has a thread
    const ParallelModel model{[&rendezvous](Rows) { rendezvous->come(); }, host_devices(count)};
    for (int call = 0; call < 30; ++call) {
      Meeting now(count);
      rendezvous = &now;
      model(count_to(count));
    }
  }
  CHECK(true);
}

TEST_CASE("a caller sleeps while a device still runs its shard") {
  const Hosts devices = host_devices(2);
  wait_for(devices[0]);
  const std::atomic<int> caller{fanout_test::this_thread()};
  std::atomic<bool> started{false};
  const ParallelModel model{[&](fanout::Context auto& ctx, Rows rows) {
                              if (ctx.rank() == 0) {
                                fanout_test::until(started);
                              } else {
                                started = true;
                                fanout_test::until_asleep(caller);
                              }
                              return sum_of_rows(rows);
                            },
                            devices};
  CHECK(total_of(model(count_to(2))) == 3);
}

// ---- calls and updates -----------------------------------------------------------------------------

namespace {

/// Two numbers that are equal except in the midst of an update.
struct Pair {
  long a = 0;
  long b = 0;
};
struct ConstPair : Pair {
  std::tuple<long, long> forward(Rows) const { return {a, b}; }
};
struct MutablePair : Pair {
  long calls = 0;
  std::tuple<long, long> forward(Rows) {
    ++calls;
    return {a, b};
  }
};

template <class M>
void check_consistency() {
  ParallelModel model{M{}, host_devices(3)};
  const std::vector<int> rows = count_to(9);
  std::atomic<int> callers{3};
  std::atomic<int> torn{0};
  std::atomic<int> backwards{0};
  std::thread updater([&] {
    for (long k = 1; callers > 0; ++k) {
      model.update([k](M& m) {
        m.a = k;
        std::this_thread::yield();
        m.b = k;
      });
    }
  });
  on_threads(3, [&](int) {
    long last = 0;
    for (int i = 0; i < 300; ++i) {
      const auto [a, b] = model(rows);
      for (std::size_t shard = 0; shard < a.extent(0); ++shard) {
        if (a(shard) != b(shard) || a(shard) != a(0)) ++torn;
      }
      if (a(0) < last) ++backwards;
      last = a(0);
    }
    --callers;
  });
  updater.join();
  CHECK(torn == 0);
  CHECK(backwards == 0);
}

}  // namespace

TEST_CASE("each call sees one state of the model while another thread updates it") {
  SUBCASE("const forward") { check_consistency<ConstPair>(); }
  SUBCASE("non-const forward") { check_consistency<MutablePair>(); }
}

TEST_CASE("an update waits for the calls that run, and a call for the update that runs") {
  std::atomic<bool> inside{false};
  std::atomic<bool> end{false};
  ParallelModel model{[&](Rows) {
                        inside = true;
                        fanout_test::until(end);
                        return 0;
                      },
                      host_devices(1)};
  std::thread caller([&] { model(count_to(1)); });
  fanout_test::until(inside);
  std::atomic<int> updater_number{0};
  std::atomic<bool> updated{false};
  std::atomic<bool> end_update{false};
  std::thread updater([&] {
    updater_number = fanout_test::this_thread();
    model.update([&](auto&) {
      updated = true;
      fanout_test::until(end_update);
    });
  });
  fanout_test::until_asleep(updater_number);
  CHECK_FALSE(updated);
  end = true;
  caller.join();
  fanout_test::until(updated);

  inside = false;
  std::atomic<int> late_number{0};
  std::thread late([&] {
    late_number = fanout_test::this_thread();
    model(count_to(1));
  });
  fanout_test::until_asleep(late_number);
  CHECK_FALSE(inside);
  end_update = true;
  late.join();
  updater.join();
  CHECK(inside);
}

TEST_CASE("an update that throws lets calls in again, and they see what it did") {
  ParallelModel model{MutablePair{}, host_devices(2)};
  model(count_to(4));
  CHECK_THROWS_AS(model.update([](MutablePair& m) {
    m.a = 5;
    throw std::bad_alloc();
  }),
                  std::bad_alloc);
  const auto [a, b] = model(count_to(4));
  CHECK(a(0) == 5);
  CHECK(a(1) == 5);
  CHECK(b(0) == 0);
}

TEST_CASE("an update from inside a forward is an error, on every shard, at any depth, and the model works afterwards") {
  using Model = ParallelModel<Calls<long, Rows, bool>, Hosts>;
  Model* self = nullptr;
  const ParallelModel deeper{[&self](Rows) {
                               self->update([](auto&) {});
                               return 0L;
                             },
                             host_devices(2)};
  for (const bool nested : {false, true}) {
    CAPTURE(nested);
    Model model{Calls<long, Rows, bool>{[&](Rows rows, bool update) {
                  if (update && nested) deeper(rows);
                  if (update) self->update([](auto&) {});
                  return sum_of_rows(rows);
                }},
                host_devices(2)};
    self = &model;
    const std::vector<int> rows = count_to(4);
    CHECK(throws_inside<Error>([&] { model(rows, true); }, "updated from inside its own forward"));
    try {
      model(rows, true);
    } catch (const ReplicaError& error) {
      CHECK(error.failures().size() == 2);
    }
    CHECK(total_of(model(rows, false)) == 10);
    int updates = 0;
    model.update([&updates](auto&) { ++updates; });
    CHECK(updates == 1);
  }
}

TEST_CASE("a call or an update inside an update is an error, also through another model") {
  ParallelModel model{[](Rows rows) { return sum_of_rows(rows); }, host_devices(2)};
  const std::vector<int> rows = count_to(4);
  CHECK(throws<Error>([&] { model.update([&](auto&) { model(rows); }); }, "called from inside its own update"));
  CHECK(throws<Error>([&] { model.update([&](auto&) { model.update([](auto&) {}); }); }, "inside its own"));
  const ParallelModel by_way{[&model](Rows r) { return total_of(model(r)); }, host_devices(2)};
  CHECK(throws_inside<Error>([&] { model.update([&](auto&) { by_way(rows); }); }, "called from inside its own update"));
  const ParallelModel updates{[&model](Rows) {
                                model.update([](auto&) {});
                                return 0;
                              },
                              host_devices(2)};
  CHECK(throws_inside<Error>([&] { model.update([&](auto&) { updates(rows); }); }, "inside its own"));
  CHECK(total_of(model(rows)) == 10);
  CHECK(total_of(by_way(rows)) == 10);
  CHECK(model.update([](auto&) { return 7; }) == 7);
}

TEST_CASE("another model can be called and updated from inside a forward and an update") {
  ParallelModel counter{ConstPair{}, host_devices(2)};
  const std::vector<int> rows = count_to(6);
  const ParallelModel model{[&counter](Rows r) {
                              counter.update([](ConstPair& m) { ++m.a, ++m.b; });
                              return std::get<0>(counter(r))(0);
                            },
                            host_devices(3)};
  on_threads(3, [&](int) {
    for (int i = 0; i < 20; ++i) model(rows);
  });
  CHECK(counter.model().a == 3 * 3 * 20);
  ParallelModel outer{ConstPair{}, host_devices(2)};
  outer.update([&](ConstPair&) { model(rows); });
  CHECK(counter.model().a == 3 * 3 * 20 + 3);
}

TEST_CASE("two models that call each other end while updates of both wait") {
  using Pair = ParallelModel<Calls<long, Rows, int>, Hosts>;
  Meeting inside(3);
  std::atomic<bool> go_on{false};
  const auto call = [&](const Pair* const& other) {
    return Calls<long, Rows, int>{[&](Rows rows, int depth) {
      if (depth == 0) return sum_of_rows(rows);
      inside.come();
      fanout_test::until(go_on);
      return total_of((*other)(rows, depth - 1));
    }};
  };
  const Pair* pong_for_ping = nullptr;
  const Pair* ping_for_pong = nullptr;
  Pair ping{call(pong_for_ping), host_devices(1)};
  Pair pong{call(ping_for_pong), host_devices(1)};
  pong_for_ping = &pong;
  ping_for_pong = &ping;

  const std::vector<int> rows = count_to(4);
  std::array<long, 2> sums{};
  std::array<std::atomic<int>, 2> updaters{};
  std::vector<std::thread> threads;
  for (const std::size_t k : {0U, 1U}) {
    Pair& model = k == 0 ? ping : pong;
    threads.emplace_back([&model, &rows, &sums, k] { sums[k] = total_of(model(rows, 1)); });
  }
  inside.come();
  for (const std::size_t k : {0U, 1U}) {
    Pair& model = k == 0 ? ping : pong;
    threads.emplace_back([&model, &updaters, k] {
      updaters[k] = fanout_test::this_thread();
      model.update([](auto&) {});
    });
    fanout_test::until_asleep(updaters[k]);
  }
  go_on = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(sums == std::array<long, 2>{10, 10});
}

// ---- models with a non-const forward ---------------------------------------------------------------

namespace {

struct Stateful {
  int inside = 0;  // plain: that the replica is one thread's at a time is all that guards it
  long calls = 0;
  std::tuple<int, long> forward(Rows) {
    const int now = ++inside;
    std::this_thread::yield();
    --inside;
    return {now, ++calls};
  }
};

}  // namespace

TEST_CASE("a non-const forward has its replica to itself, whichever thread calls") {
  const ParallelModel model{Stateful{}, host_devices(2)};
  const std::vector<int> rows = count_to(6);
  std::atomic<int> together{0};
  on_threads(4, [&](int) {
    for (int i = 0; i < 200; ++i) {
      const auto [inside, calls] = model(rows);
      for (std::size_t shard = 0; shard < 2; ++shard) together += inside(shard) == 1 ? 0 : 1;
    }
  });
  CHECK(together == 0);
  CHECK(model.replica(0).model().calls == 800);
  CHECK(model.replica(1).model().calls == 800);
  CHECK(model.model().calls == 0);
}

namespace {

/// Calls itself from a forward that is not const.
struct BusyRecursive {
  const ParallelModel<BusyRecursive, Hosts>* const* self;
  std::function<void()> before;
  long forward(Rows rows, int depth) {
    if (depth == 0) return sum_of_rows(rows);
    if (before) before();
    return total_of((**self)(std::vector<int>(rows.begin(), rows.end()), depth - 1));
  }
};

}  // namespace

TEST_CASE("a busy replica that is called from inside itself is an error in a ReplicaError, and works afterwards") {
  const ParallelModel<BusyRecursive, Hosts>* self = nullptr;
  for (const int devices : {1, 2, 3}) {
    CAPTURE(devices);
    const ParallelModel<BusyRecursive, Hosts> model{BusyRecursive{&self, {}}, host_devices(devices)};
    self = &model;
    const std::vector<int> rows = count_to(9);
    for (int i = 0; i < 20; ++i) {
      CHECK(throws_inside<Error>([&] { model(rows, 1); }, "called from inside its own forward"));
      CHECK(total_of(model(rows, 0)) == 45);
    }
  }
}

TEST_CASE("shards of a busy model that call it while all its replicas are busy do not wait for one another") {
  const ParallelModel<BusyRecursive, Hosts>* self = nullptr;
  for (int round = 0; round < 20; ++round) {
    Meeting rendezvous(2);
    const ParallelModel<BusyRecursive, Hosts> model{BusyRecursive{&self, [&rendezvous] { rendezvous.come(); }},
                                                    host_devices(2)};
    self = &model;
    CHECK(throws_inside<Error>([&] { model(count_to(4), 1); }, "called from inside its own forward"));
    CHECK(total_of(model(count_to(4), 0)) == 10);
  }
}

TEST_CASE("a call of a busy replica through another model inside its own forward is an error") {
  struct Outer {
    std::function<long(Rows)> next;
    long calls = 0;
    long forward(Rows rows, bool go_on) {
      ++calls;
      return go_on ? next(rows) : sum_of_rows(rows);
    }
  };
  const ParallelModel<Outer, Hosts>* self = nullptr;
  const ParallelModel between{[&self](Rows rows) { return total_of((*self)(rows, false)); }, host_devices(2)};
  const ParallelModel<Outer, Hosts> model{Outer{[&between](Rows rows) { return total_of(between(rows)); }},
                                          host_devices(2)};
  self = &model;
  CHECK(throws_inside<Error>([&] { model(count_to(4), true); }, "called from inside its own forward"));
  CHECK(total_of(model(count_to(4), false)) == 10);
}

TEST_CASE("models with non-const forwards can call one another, from four threads at once") {
  struct Leaf {
    long calls = 0;
    long forward(Rows rows) {
      ++calls;
      return sum_of_rows(rows);
    }
  };
  const ParallelModel leaf{Leaf{}, host_devices(2)};
  struct Outer {
    const ParallelModel<Leaf, Hosts>* leaf;
    long calls = 0;
    long forward(Rows rows) {
      ++calls;
      return total_of((*leaf)(rows));
    }
  };
  const ParallelModel outer{Outer{&leaf}, host_devices(3)};
  std::atomic<int> wrong{0};
  on_threads(4, [&](int) {
    for (int i = 0; i < 50; ++i) wrong += total_of(outer(count_to(9))) == 45 ? 0 : 1;
  });
  CHECK(wrong == 0);
}

// ---- fork ------------------------------------------------------------------------------------------

namespace {

/// The shards of a call wait for each other, so that a call ends only if all devices run.
struct Meets {
  Meeting* const* rendezvous;
  long forward(Rows rows) const {
    (*rendezvous)->come();
    return sum_of_rows(rows);
  }
};

/// Uses models of all kinds; 0 if all went well.
template <class Const, class Mutable>
int use_models(const Const& meets, Meeting** rendezvous, Mutable& pair) {
  for (int i = 0; i < 5; ++i) {
    Meeting now(2);
    *rendezvous = &now;
    if (total_of(meets(count_to(4))) != 10) return 1;
  }
  for (long k = 1; k <= 3; ++k) {
    const long before = pair.model().a;
    pair.update([](MutablePair& m) { ++m.a; });
    const auto [a, b] = pair(count_to(4));
    if (a(0) != before + 1 || a(1) != before + 1) return 2;
  }
  return 0;
}

}  // namespace

TEST_CASE("the child of a fork can call and update its parent's models, whatever other threads did") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  const Hosts devices = host_devices(2);
  Meeting* rendezvous = nullptr;
  const ParallelModel meets{Meets{&rendezvous}, devices};
  ParallelModel pair{MutablePair{}, devices};
  REQUIRE(use_models(meets, &rendezvous, pair) == 0);
  const auto use = [&] { return use_models(meets, &rendezvous, pair); };

  SUBCASE("nothing") {
    CHECK(fanout_test::in_child(use) == 0);
    CHECK(fanout_test::in_child([&] { return fanout_test::in_child(use); }) == 0);
  }
  SUBCASE("one was inside a call of the same models, on the same devices") {
    Meeting three(3);
    rendezvous = &three;
    std::thread caller([&] { meets(count_to(4)); });
    std::atomic<bool> end{false};
    std::atomic<int> inside{0};
    const ParallelModel blocked{[&](Rows) {
                                  ++inside;
                                  fanout_test::until(end);
                                  return 0;
                                },
                                host_devices(3)};
    std::thread other([&] { blocked(count_to(3)); });
    while (inside != 3) std::this_thread::yield();
    CHECK(fanout_test::in_child([&] {
            end = true;
            if (blocked(count_to(3)).extent(0) != 3) return 3;
            return use();
          }) == 0);
    three.come();
    end = true;
    caller.join();
    other.join();
  }
  SUBCASE("one was inside an update") {
    std::atomic<bool> inside{false};
    std::atomic<bool> end{false};
    std::thread updater([&] {
      pair.update([&](MutablePair&) {
        inside = true;
        fanout_test::until(end);
      });
    });
    fanout_test::until(inside);
    CHECK(fanout_test::in_child(use) == 0);
    end = true;
    updater.join();
  }
  SUBCASE("one called and updated all the time") {
    if (!fanout_test::can_fork_while_allocating) {
      fanout_test::skip("AddressSanitizer's allocator may be locked in the child");
      return;
    }
    std::atomic<bool> end{false};
    std::atomic<int> turns{0};
    ParallelModel busy{MutablePair{}, devices};
    std::thread caller([&] {
      while (!end) {
        busy(count_to(4));
        busy.update([](MutablePair& m) { ++m.a; });
        ++turns;
      }
    });
    while (turns < 5) std::this_thread::yield();
    int failed = 0;
    for (int i = 0; i < 20; ++i) {
      failed += fanout_test::in_child([&] {
                  const int first = use_models(meets, &rendezvous, busy);
                  return first != 0 ? first : use();
                }) != 0
                    ? 1
                    : 0;
    }
    end = true;
    caller.join();
    CHECK(failed == 0);
  }
  CHECK(use() == 0);  // the parent goes on
}

TEST_CASE("after a fork inside a forward only the child's call fails") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  fanout::HostDeviceOptions options{.count = 2};
  SUBCASE("of devices that spin") { options.wait = fanout::Spin{}; }
  SUBCASE("of devices that sleep") {}
  const Hosts devices = host_devices(options);
  wait_for(devices[0]);  // so that the first shard runs on this thread
  pid_t child = -1;
  std::atomic<bool> started{false};
  std::atomic<bool> end{false};
  const std::thread::id caller = std::this_thread::get_id();
  bool go = true;
  const auto forward = [&](Rows rows) {
    if (go && std::this_thread::get_id() == caller) {
      fanout_test::until(started);
      child = ::fork();
      if (child == 0) ::alarm(60);
      end = true;
    } else if (go) {
      started = true;
      fanout_test::until(end);
    }
    return sum_of_rows(rows);
  };
  const auto run = [&](auto& model) {
    bool threw = false;
    long sum = 0;
    try {
      sum = total_of(model(count_to(4)));
    } catch (const Error&) {
      threw = true;
    }
    if (child == 0) {
      fanout_test::child_ends_with([&] {
        if (!threw) return 1;
        go = false;  // the model can be called and updated again
        if (total_of(model(count_to(4))) != 10) return 2;
        model.update([](auto&) {});
        return total_of(model(count_to(4))) == 10 ? 0 : 3;
      });
    }
    CHECK_FALSE(threw);
    CHECK(sum == 10);
    CHECK(fanout_test::exit_code_of(child) == 0);
    go = false;
    CHECK(total_of(model(count_to(4))) == 10);
    model.update([](auto&) {});
    CHECK(total_of(model(count_to(4))) == 10);
  };
  SUBCASE("const") {
    ParallelModel model{forward, devices};
    run(model);
  }
  SUBCASE("non-const") {
    ParallelModel model{[&forward](Rows rows) mutable { return forward(rows); }, devices};
    run(model);
  }
}

TEST_CASE("a child that was forked on a device's own thread ends with a failure when its shard returns") {
  if (!fanout_test::can_fork) {
    fanout_test::skip(fanout_test::cannot_fork);
    return;
  }
  const Hosts devices = host_devices(2);
  wait_for(devices[0]);
  Meeting* rendezvous = nullptr;
  const ParallelModel meets{[&rendezvous](Rows) { rendezvous->come(); }, devices};
  for (const bool nested : {false, true}) {
    CAPTURE(nested);
    pid_t child = -1;
    std::atomic<bool> started{false};
    const ParallelModel model{[&](fanout::Context auto& ctx, Rows) {
                                if (ctx.rank() == 0) {
                                  fanout_test::until(started);
                                  return;
                                }
                                started = true;
                                child = ::fork();
                                if (child != 0) return;
                                ::alarm(60);
                                if (!nested) return;
                                Meeting both(2);  // starts threads
                                rendezvous = &both;
                                meets(count_to(2));
                              },
                              devices};
    model(count_to(2));
    CHECK(fanout_test::exit_code_of(child) == EXIT_FAILURE);
  }
}
