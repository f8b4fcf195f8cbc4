// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models that a factory makes, one on each device.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/asleep.hpp"
#include "support/fork.hpp"
#include "support/meeting.hpp"
#include "support/message_of.hpp"
#include "support/skip.hpp"
#include "support/toy_device.hpp"

using fanout::DeviceSet;
using fanout::factory;
using fanout::FactoryError;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::Options;
using fanout::ParallelModel;
using fanout_test::Meeting;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::ToyDevice;

namespace {

using Hosts = DeviceSet<HostDevice>;
using Rows = std::span<const int>;

/// Can be neither copied nor moved, and is counted.
struct Session {
  static inline std::atomic<int> made = 0;
  static inline std::atomic<int> living = 0;

  explicit Session(int number) : index(number) {
    ++made;
    ++living;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { --living; }

  std::vector<int> forward(Rows x) const { return std::vector<int>(x.size(), index); }

  const int index;
};
static_assert(!std::is_move_constructible_v<Session>);

constexpr auto make_session = [](const auto& device) { return Session(device.id().index); };

struct Broken : ToyDevice {
  Entered enter() const { throw std::runtime_error("the device is gone"); }
  static std::vector<Broken> visible() { return {{ToyDevice::visible()[0]}, {ToyDevice::visible()[1]}}; }
};

const std::vector<int> five{0, 1, 2, 3, 4};

}  // namespace

TEST_CASE("a factory makes one model for each device, in place, and they live as long as the parallel model") {
  Session::made = 0;
  {
    const ParallelModel model{factory(make_session), host_devices(3)};
    CHECK(Session::made == 3);
    CHECK(Session::living == 3);
    CHECK(model(five) == std::vector{0, 0, 1, 1, 2});
    CHECK(model(five) == std::vector{0, 0, 1, 1, 2});
    for (std::size_t i = 0; i < 3; ++i) {
      static_assert(std::is_same_v<decltype(model.replica(i).model()), const Session&>);
      CHECK(model.replica(i).model().index == static_cast<int>(i));
      CHECK(model.replica(i).device().id().index == static_cast<int>(i));
    }
    CHECK_THROWS_AS(model.replica(3), fanout::InvalidDeviceId);
    CHECK(Session::made == 3);
  }
  CHECK(Session::living == 0);
}

TEST_CASE("a parallel model of a factory is deduced, with devices and options or without") {
  const ParallelModel alone{factory(make_session)};
  using Made = fanout::Factory<std::remove_const_t<decltype(make_session)>>;
  static_assert(std::is_same_v<decltype(alone), const ParallelModel<Made>>);
  CHECK(alone(five).size() == 5);
  const ParallelModel all{factory(make_session), host_devices(2), Options{.split = fanout::WeightedSplit{4, 1}}};
  static_assert(std::is_same_v<decltype(all), const ParallelModel<Made, Hosts>>);
  CHECK(all(five) == std::vector{0, 0, 0, 0, 1});
  const ParallelModel with_options{factory(make_session), Options{.seed = 7}};
  static_assert(std::is_same_v<decltype(with_options), const ParallelModel<Made>>);
}

TEST_CASE("a factory may take no device, be a function, or hold move-only members") {
  std::atomic<int> next = 0;
  const ParallelModel numbered{factory([&next] { return Session(next++); }), host_devices(2)};
  CHECK(numbered.replica(0).model().index + numbered.replica(1).model().index == 1);

  const ParallelModel by_function{factory(+[](const HostDevice& device) { return Session(device.id().index + 5); }),
                                  host_devices(2)};
  CHECK(by_function(five) == std::vector{5, 5, 5, 6, 6});

  const ParallelModel by_owner{factory([seven = std::make_unique<int>(7)] { return Session(*seven); }),
                               host_devices(1)};
  CHECK(by_owner.replica(0).model().index == 7);
}

TEST_CASE("a factory that takes a device or nothing is given the device") {
  struct Both {
    Session operator()() const { return Session(-1); }
    Session operator()(const HostDevice& device) const { return Session(device.id().index); }
  };
  const ParallelModel model{factory(Both{}), host_devices(2)};
  CHECK(model.replica(1).model().index == 1);
}

TEST_CASE("a factory is destroyed when all models are made") {
  const auto counted = std::make_shared<int>(0);
  const ParallelModel model{factory([counted] { return Session(*counted); }), host_devices(2)};
  CHECK(counted.use_count() == 1);
}

TEST_CASE("the models are made at the same time, on a thread for each device") {
  Meeting all(3);  // nobody leaves before all have come
  struct Threaded {
    std::thread::id by = std::this_thread::get_id();
    int forward(Rows) const { return 0; }
  };
  const ParallelModel model{factory([&all] {
                              all.come();
                              return Threaded{};
                            }),
                            host_devices(3)};
  CHECK(model.replica(0).model().by == std::this_thread::get_id());
  CHECK(model.replica(1).model().by != model.replica(0).model().by);
  CHECK(model.replica(2).model().by != model.replica(0).model().by);
  CHECK(model.replica(1).model().by != model.replica(2).model().by);
}

TEST_CASE("each model is made and destroyed with its device entered, and the device is waited for") {
  struct Watches {
    explicit Watches(bool* seen) : entered_at_the_end(seen) { CHECK(ToyDevice::entered > ToyDevice::left); }
    Watches(const Watches&) = delete;
    Watches& operator=(const Watches&) = delete;
    ~Watches() { *entered_at_the_end = ToyDevice::entered > ToyDevice::left; }
    int forward(Rows) const { return 0; }
    bool* entered_at_the_end;
  };
  const int synchronized = ToyDevice::synchronized;
  bool entered_at_the_end = false;
  {
    const std::vector<ToyDevice> one{ToyDevice::visible()[0]};
    const ParallelModel model{factory([&] { return Watches(&entered_at_the_end); }), DeviceSet{one}};
    CHECK(ToyDevice::entered == ToyDevice::left);
    CHECK(ToyDevice::synchronized == synchronized + 1);
  }
  CHECK(entered_at_the_end);
  CHECK(ToyDevice::entered == ToyDevice::left);
}

TEST_CASE("a device that cannot be entered is a failure of its own") {
  Session::made = 0;
  CHECK(says(message_of<FactoryError>([] {
               const ParallelModel model{factory(make_session), DeviceSet{Broken::visible()}};
             }),
             "2 of 2 replicas", "toy:0", "the device is gone", "toy:1", "the device is gone"));
  CHECK(Session::made == 0);
}

TEST_CASE("different kinds of devices may have models of different types, made by replicate as well") {
  struct OnToys {
    std::vector<int> forward(Rows x) const { return std::vector<int>(x.size(), 100); }
  };
  const auto make = [](const auto& device) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(device)>, ToyDevice>) {
      return OnToys{};
    } else {
      return Session(device.id().index);
    }
  };
  const auto devices = host_devices(2) | fanout::AllVisible<ToyDevice>{}.select();
  const ParallelModel model{factory(make), devices};
  CHECK(model(five) == std::vector{0, 0, 1, 100, 100});
  const auto replicas = fanout::replicate(factory(make), devices);
  CHECK(fanout::gather(fanout::apply(replicas, fanout::scatter(devices, five))) == std::vector{0, 0, 1, 100, 100});
}

TEST_CASE("a parallel model of a factory is itself a model, and may be made by a factory") {
  const ParallelModel outer{ParallelModel{factory(make_session), host_devices(2)}, host_devices(2)};
  CHECK(outer(std::vector<int>(8)) == std::vector{0, 0, 1, 1, 0, 0, 1, 1});
  const ParallelModel made{factory([] {
                             return ParallelModel{factory(make_session), host_devices(2)};
                           }),
                           host_devices(2)};
  CHECK(made(std::vector<int>(8)) == std::vector{0, 0, 1, 1, 0, 0, 1, 1});
}

TEST_CASE("if the factory throws, all are waited for, those made are destroyed, and every failure is reported") {
  Session::made = 0;
  Meeting all(4);
  const auto make = [&all](const HostDevice& device) {
    all.come();
    if (device.id().index == 1) throw std::runtime_error("no licence");
    if (device.id().index == 3) throw 3;
    return Session(device.id().index);
  };
  try {
    const ParallelModel model{factory(make), host_devices(4)};
    FAIL("nothing was thrown");
  } catch (const FactoryError& error) {
    CHECK(Session::made == 2);
    CHECK(Session::living == 0);
    REQUIRE(error.failures().size() == 2);
    CHECK(to_string(error.failures()[0].device) == "host:1");
    CHECK(error.failures()[1].shard == 3);
    CHECK(error.get_if<std::runtime_error>()->what() == std::string("no licence"));
    CHECK(*error.get_if<int>() == 3);
    CHECK_THROWS_AS(error.rethrow(), std::runtime_error);
    CHECK(error.what() == std::string("the factory failed on 2 of 4 replicas\n"
                                      "  Caught std::runtime_error in replica 1 on device host:1: no licence\n"
                                      "  Caught an exception that is no std::exception in replica 3 on device host:3"));
  }
  const ParallelModel after{factory(make_session), host_devices(4)};  // the devices work on
  CHECK(after(five).size() == 5);
}

TEST_CASE("a FactoryError can be caught as a ReplicaError") {
  const auto make = []() -> Session { throw std::runtime_error("none"); };
  CHECK_THROWS_AS((ParallelModel{factory(make), host_devices(2)}), fanout::ReplicaError);
}

TEST_CASE("invalid options are refused before the factory is called") {
  Session::made = 0;
  CHECK_THROWS_AS((ParallelModel{factory(make_session), host_devices(2), Options{.split = fanout::WeightedSplit{1}}}),
                  fanout::InvalidArgument);
  const fanout::DeviceId none{.kind = "none", .index = 0};
  CHECK_THROWS_AS((ParallelModel{factory(make_session), host_devices(2), Options{.output = none}}),
                  fanout::InvalidDeviceId);
  CHECK(Session::made == 0);
}

TEST_CASE("a factory inside forward may use the same devices and call a model that is being updated") {
  ParallelModel other{[](Rows x) { return static_cast<int>(x.size()); }, host_devices(2)};
  const ParallelModel outer{[&other](Rows x) {
                              const auto make = [&other](const HostDevice& device) {
                                return Session(device.id().index + other(std::vector<int>(2))[0]);
                              };
                              const ParallelModel inner{factory(make), host_devices(3)};
                              return inner(x);
                            },
                            host_devices(3)};
  std::atomic<bool> stop = false;
  std::thread updates([&] {
    while (!stop) other.update([](const auto&) {});
  });
  int right = 0;
  for (int i = 0; i < 50; ++i) right += outer(std::vector<int>(9)) == std::vector{1, 2, 3, 1, 2, 3, 1, 2, 3} ? 1 : 0;
  stop = true;
  updates.join();
  CHECK(right == 50);
}

TEST_CASE("a factory inside a model's forward may call that model while an update of it waits") {
  const auto devices = host_devices(3);
  const DeviceSet first{std::vector{devices[0]}};
  const DeviceSet others{std::vector{devices[1], devices[2]}};
  std::optional<ParallelModel<std::function<int(Rows)>, Hosts>> outer;
  std::atomic<int> updating = 0;
  std::thread update;
  Meeting both(2);  // so that one is made on the thread of its device
  const auto make = [&] {
    both.come();
    return Session((*outer)(std::vector<int>(2))[0]);
  };
  const auto forward = [&](Rows x) {
    if (x.size() == 2) return 7;
    update = std::thread([&] {
      updating = fanout_test::this_thread();
      outer->update([](const auto&) {});
    });
    fanout_test::until_asleep(updating);
    const ParallelModel inner{factory(make), others};
    return inner.replica(0).model().index + inner.replica(1).model().index;
  };
  outer.emplace(forward, first);
  CHECK((*outer)(std::vector<int>(4))[0] == 14);
  update.join();
}

TEST_CASE("a factory is used in the child of a fork") {
  if (!fanout_test::can_fork) return fanout_test::skip(fanout_test::cannot_fork);
  CHECK(fanout_test::in_child([] {
          const ParallelModel made{factory(make_session), host_devices(2)};
          return made(five).back();
        }) == 1);
}
