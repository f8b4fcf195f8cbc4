// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models that are copied for each device though their forward is const.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::per_replica;
using fanout::PerReplica;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Rows = std::span<const int>;

/// Remembers how often it was asked, in a cache that has no lock.
struct Cached {
  int factor = 1;
  mutable int asked = 0;
  int forward(Rows) const { return factor * ++asked; }
};

template <class Tensor>
std::vector<int> listed(const Tensor& values) {
  return {values.begin(), values.end()};
}

const std::vector<int> five{0, 1, 2, 3, 4};

}  // namespace

TEST_CASE("per_replica gives each device a copy, whatever forward is, and leaves the original as it is") {
  const ParallelModel model{per_replica(Cached{}), host_devices(2)};
  static_assert(std::is_same_v<decltype(model.model()), const Cached&>);
  CHECK(model.replica(0).shares_original());  // until it runs
  CHECK(listed(model(five)) == std::vector{1, 1});
  CHECK(listed(model(std::vector{1})) == std::vector{2});
  CHECK(listed(model(five)) == std::vector{3, 2});
  CHECK(model.model().asked == 0);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK_FALSE(model.replica(i).shares_original());
    CHECK(&model.replica(i).model() != &model.model());
    CHECK(model.replica(i).model().asked == static_cast<int>(3 - i));
  }
}

TEST_CASE("an update refreshes the copies") {
  ParallelModel model{per_replica(Cached{}), host_devices(2)};
  CHECK(listed(model(five)) == std::vector{1, 1});
  model.update([](Cached& original) { original = {.factor = 10, .asked = 5}; });
  CHECK(listed(model(five)) == std::vector{60, 60});
  CHECK(listed(model(five)) == std::vector{70, 70});
}

TEST_CASE("a copy runs one call at a time, so that mutable members need no lock") {
  struct Slow {
    mutable int asked = 0;
    int forward(Rows) const {
      const int before = asked;
      std::this_thread::yield();  // so that others come
      return asked = before + 1;
    }
  };
  const ParallelModel model{per_replica(Slow{}), host_devices(2)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&model] {
      for (int i = 0; i < 200; ++i) static_cast<void>(model(five));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(model.replica(0).model().asked == 800);
  CHECK(model.replica(1).model().asked == 800);
}

TEST_CASE("the const forward of a model that has both is the one that runs") {
  struct Both {
    int forward(Rows) const { return 1; }
    int forward(Rows) { return 2; }
  };
  CHECK(ParallelModel{Both{}, host_devices(1)}(five)[0] == 1);
  CHECK(ParallelModel{per_replica(Both{}), host_devices(1)}(five)[0] == 1);
}

TEST_CASE("per_replica takes lambdas, models that are not const, options, and copies by the model's own rule") {
  const ParallelModel lambda{per_replica([count = 0](Rows) mutable { return ++count; }), host_devices(2),
                             Options{.split = fanout::WeightedSplit{4, 1}}};
  CHECK(listed(lambda(five)) == std::vector{1, 1});
  CHECK(listed(lambda(five)) == std::vector{2, 2});

  struct Deep {
    explicit Deep(int value) : held(std::make_unique<int>(value)) {}
    Deep(const Deep& other) : held(std::make_unique<int>(*other.held)) {}
    int forward(Rows) const { return ++*held; }
    std::unique_ptr<int> held;
  };
  const ParallelModel deep{per_replica(Deep(4)), host_devices(2)};
  CHECK(listed(deep(five)) == std::vector{5, 5});
  CHECK(listed(deep(five)) == std::vector{6, 6});
  CHECK(*deep.model().held == 4);
}

TEST_CASE("replicate takes a per_replica model too") {
  const auto devices = host_devices(2);
  const auto replicas = fanout::replicate(per_replica(Cached{}), devices);
  const auto inputs = fanout::scatter(devices, five);
  CHECK(listed(fanout::gather(fanout::apply(replicas, inputs))) == std::vector{1, 1});
  CHECK(replicas.original().model.asked == 0);
}

TEST_CASE("a call of a per_replica model inside its own forward is an error") {
  std::function<int()> again;
  const ParallelModel model{per_replica([&again](Rows x) { return x.size() == 5 ? again() : 1; }), host_devices(1)};
  again = [&] { return model(std::vector{1})[0]; };
  CHECK(says(message_of<fanout::ReplicaError>([&] { static_cast<void>(model(five)); }),
             "called from inside its own forward", "host:0"));
  CHECK(model(std::vector{1})[0] == 1);
}

namespace {

/// Has a cache of its own in each replica.
struct Caches {
  int factor = 1;
  PerReplica<std::vector<int>> seen = std::vector{100};
  int forward(Rows x) const {
    seen->push_back(x[0]);
    return factor * static_cast<int>(seen->size());
  }
};

}  // namespace

TEST_CASE("a PerReplica field makes each device have a copy, copied from the original at first and then its own") {
  ParallelModel model{Caches{}, host_devices(2)};
  CHECK(listed(model(five)) == std::vector{2, 2});
  CHECK(listed(model(std::vector{7})) == std::vector{3});
  CHECK(*model.model().seen == std::vector{100});
  CHECK(*model.replica(0).model().seen == std::vector{100, 0, 7});
  CHECK(*model.replica(1).model().seen == std::vector{100, 3});
  model.update([](Caches& original) {
    original = Caches{.factor = 10};
    original.seen->clear();
  });
  CHECK(model.model().seen->empty());
  CHECK(listed(model(five)) == std::vector{40, 30});  // what each had seen stays
  CHECK(*model.replica(0).model().seen == std::vector{100, 0, 7, 0});
}

TEST_CASE("outside of a refresh a PerReplica is copied, moved and assigned as its value") {
  PerReplica<std::string> one = std::string("one");
  PerReplica<std::string> two = one;
  CHECK(*two == "one");
  *two = "two";
  one = two;
  CHECK(*one == "two");
  const PerReplica<std::string> three = std::move(two);
  *three += "!";
  CHECK(three->size() == 4);
  one = std::string("four");
  CHECK(*one == "four");
  CHECK(PerReplica<int>(3).operator*() == 3);
}

TEST_CASE("a PerReplica field that a class does not list is refused if the model is shared") {
  class Hides {
   public:
    int forward(Rows) const { return ++*calls_; }

   private:
    PerReplica<int> calls_ = 0;
  };
  const ParallelModel shared{Hides(), host_devices(2)};
  CHECK(says(message_of<fanout::ReplicaError>([&] { static_cast<void>(shared(five)); }),
             "a PerReplica was used in a model that is shared", "fields()", "per_replica(model)"));
  const ParallelModel apart{per_replica(Hides()), host_devices(2)};
  static_cast<void>(apart(five));
  CHECK(listed(apart(five)) == std::vector{2, 2});
  const ParallelModel lambda{[calls = PerReplica<int>(0)](Rows) mutable { return ++*calls; }, host_devices(1)};
  CHECK(lambda(five)[0] == 1);  // it is not const, so that it is copied
}

TEST_CASE("a model of a factory with a PerReplica field runs one call at a time") {
  const ParallelModel model{fanout::factory([] { return Caches{}; }), host_devices(2)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&model] {
      for (int i = 0; i < 100; ++i) static_cast<void>(model(five));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(model.replica(0).model().seen->size() == 301);
  CHECK(model.replica(1).model().seen->size() == 301);
}
