// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>
#include <type_traits>

#include <fanout/fanout.hpp>

using fanout::host_devices;
using fanout::HostDevice;
using fanout::on_all;
using fanout::ParallelModel;

namespace {

/// Has a forward that changes it, and one that does not.
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
  Copies(Copies&&) = default;
  Copies& operator=(const Copies&) {
    *made += 100;
    return *this;
  }
  Copies& operator=(Copies&&) = default;
  int forward() { return 0; }
};

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

TEST_CASE("a replica shares the original until a non-const forward runs") {
  const ParallelModel model{Counter{}, host_devices(1)};
  const auto& replica = model.replica(0);
  CHECK(model(1, 2)[0] == -1);
  CHECK(replica.shares_original());
  CHECK(&replica.model() == &model.model());
  CHECK(replica.version() == 0);
  const auto five = model(5);
  static_assert(std::is_same_v<decltype(five), const fanout::Tensor<int, 1>>, "a value also for a reference");
  CHECK(five[0] == 5);
  CHECK(model(5)[0] == 10);
  CHECK_FALSE(replica.shares_original());
  CHECK(replica.model().calls == 10);
  CHECK(model.model().calls == 0);
}

TEST_CASE("a model that cannot be assigned is copied by construction") {
  ParallelModel model{Fixed(10), host_devices(1)};
  CHECK(model()[0] == 11);
  CHECK(model()[0] == 12);
  model.update([](Fixed&) {});
  CHECK(model()[0] == 11);
}

TEST_CASE("a model is copied once for each device, and assigned at each refresh") {
  int made = 0;
  ParallelModel model{Copies(&made), host_devices(1)};
  CHECK(made == 0);
  model();
  model();
  CHECK(made == 1);
  model.update([](Copies&) {});
  CHECK(made == 1);
  model();
  CHECK(made == 101);
}

TEST_CASE("a model's own copy rule is used at first and at each refresh") {
  ParallelModel model{ToDevice{std::make_unique<int>(5)}, host_devices(2)};
  const auto& replica = model.replica(1);
  CHECK(replica.current_copy() == nullptr);
  CHECK(model(on_all())[1] == 6);
  CHECK(model(on_all())[1] == 7);
  CHECK(replica.model().device == 1);
  CHECK(*model.model().value == 5);
  CHECK(replica.current_copy() == &replica.model());
  model.update([](ToDevice& original) { *original.value = 50; });
  CHECK(replica.current_copy() == nullptr);
  CHECK(model(on_all())[1] == 51);
  CHECK(*replica.model().calls == 103);  // its own
}
