// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>

#include <fanout/context/shard_context.hpp>
#include <fanout/replica/replicate.hpp>

namespace {

using fanout::HostDevice;
using fanout::Replica;
using fanout::detail::Original;

struct Counter {
  int calls = 0;
  const int& forward(int step) { return calls += step; }
  int forward(int, int) const { return -1; }
};

/// Copied by construction only.
struct Fixed {
  explicit Fixed(int start) : first(start) {}
  const int first;
  int calls = 0;
  int forward() { return first + ++calls; }
};

struct Copies {
  int* made;
  explicit Copies(int* counter) : made(counter) {}
  Copies(const Copies& other) : made(other.made) { ++*made; }
  Copies& operator=(const Copies&) {
    *made += 100;
    return *this;
  }
  int forward() { return 0; }
};

struct Fixture {
  fanout::DeviceSet<HostDevice> devices = fanout::host_devices(2);
  fanout::Plan plan{{.rows = {0, 1}, .device = 0}};
  const fanout::detail::CallSettings settings;
  fanout::detail::CallState frame{plan, settings};
  fanout::detail::Scratch scratch;
  fanout::ShardContext<HostDevice> ctx{devices[0], frame, 0, scratch};
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a replica shares the original until a non-const forward runs") {
  const Original<Counter> original{.model = {}};
  const Replica<Counter, HostDevice> replica(original, devices[1]);
  CHECK(replica.device().id().index == 1);
  CHECK(replica.run(nullptr, ctx, 1, 2) == -1);
  CHECK(replica.shares_original());
  CHECK(&replica.model() == &original.model);
  CHECK(replica.version() == 0);
  CHECK(replica.run(nullptr, ctx, 5) == 5);
  static_assert(std::is_same_v<decltype(replica.run(nullptr, ctx, 5)), int>);
  CHECK(replica.run(nullptr, ctx, 5) == 10);
  CHECK_FALSE(replica.shares_original());
  CHECK(replica.model().calls == 10);
  CHECK(original.model.calls == 0);
}

TEST_CASE_FIXTURE(Fixture, "a copy is refreshed when the version of the original has moved, and at no other time") {
  Original<Counter> original{.model = {}};
  const Replica<Counter, HostDevice> replica(original, devices[0]);
  replica.run(nullptr, ctx, 1);
  original.model.calls = 100;
  CHECK(replica.run(nullptr, ctx, 1) == 2);
  original.version.fetch_add(1);
  CHECK(replica.version() == 0);
  CHECK(replica.run(nullptr, ctx, 1) == 101);
  CHECK(replica.version() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a model that cannot be assigned is copied by construction") {
  Original<Fixed> original{.model = Fixed(10)};
  const Replica<Fixed, HostDevice> replica(original, devices[0]);
  CHECK(replica.run(nullptr, ctx) == 11);
  CHECK(replica.run(nullptr, ctx) == 12);
  original.version.fetch_add(1);
  CHECK(replica.run(nullptr, ctx) == 11);
}

TEST_CASE_FIXTURE(Fixture, "a model is copied once, and assigned at each refresh") {
  int made = 0;
  Original<Copies> original{.model = Copies(&made)};
  const Replica<Copies, HostDevice> replica(original, devices[0]);
  CHECK(made == 0);
  replica.run(nullptr, ctx);
  replica.run(nullptr, ctx);
  CHECK(made == 1);
  original.version.fetch_add(1);
  replica.run(nullptr, ctx);
  CHECK(made == 101);
}

namespace {

/// Says how it is copied, which nobody could otherwise.
struct ToDevice {
  std::unique_ptr<int> value;
  int device = -1;
  fanout::PerReplica<int> calls = 0;
  int forward() {
    ++*calls;
    return ++*value;
  }
  ToDevice to(const HostDevice& where) const { return {std::make_unique<int>(*value), where.id().index, 100}; }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a model's own copy rule is used at first and at each refresh") {
  Original<ToDevice> original{.model = {std::make_unique<int>(5)}};
  const Replica<ToDevice, HostDevice> replica(original, devices[1]);
  CHECK(replica.current_copy() == nullptr);
  CHECK(replica.run(nullptr, ctx) == 6);
  CHECK(replica.run(nullptr, ctx) == 7);
  CHECK(replica.model().device == 1);
  CHECK(*original.model.value == 5);
  CHECK(replica.current_copy() == &replica.model());
  *original.model.value = 50;
  original.version.fetch_add(1);
  CHECK(replica.current_copy() == nullptr);
  CHECK(replica.run(nullptr, ctx) == 51);
  CHECK(*replica.model().calls == 103);  // its own
  replica.drop_copy();
  CHECK(replica.shares_original());
  CHECK(replica.run(nullptr, ctx) == 51);
}
