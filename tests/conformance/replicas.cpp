// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules 53 to 90 of docs/conformance.md: how a model becomes replicas, and how they run.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <complex>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "conformance/shards.hpp"
#include "support/message_of.hpp"
#include "support/toy_device.hpp"

using conformance::count_to;
using conformance::Tell;
using conformance::values;
using fanout::Context;
using fanout::DeviceId;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::ReplicaError;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::ToyDevice;

namespace {

using Texts = std::vector<std::string>;

/// Counts its copies, and how many of all kinds there are.
struct Counted {
  static inline std::atomic<int> copies = 0;
  static inline std::atomic<int> alive = 0;
  int calls = 0;

  Counted() { ++alive; }
  Counted(const Counted& other) : calls(other.calls) {
    ++alive;
    ++copies;
  }
  Counted(Counted&& other) noexcept : calls(other.calls) { ++alive; }
  Counted& operator=(const Counted& other) {
    calls = other.calls;
    ++copies;
    return *this;
  }
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --alive; }

  int forward(View<const int, 1>) { return ++calls; }
};

/// Tells where its weight lies.
struct Weighted {
  Tensor<int, 1> weight{3};
  std::vector<const int*> forward(View<const int, 1>) const { return {weight.data()}; }
};

/// A model as they are: tensors by name and in lists, a child that may be absent, a flag, state of any kind.
struct Network {
  std::vector<Tensor<int, 1>> layers{2, count_to(3)};
  std::map<std::string, Tensor<int, 1>> heads{{"head", count_to(2)}};
  std::optional<Tensor<int, 1>> bias = {};
  std::vector<int> log = {};
  bool training = true;

  bool forward(View<const int, 1> x) {
    log.push_back(x[0]);
    layers[0][0] += x[0];
    CHECK_FALSE(bias.has_value());
    return training;
  }
};

/// Two parts that own one tensor together.
struct Tied {
  fanout::Shared<Tensor<int, 1>> encoder = Tensor<int, 1>(2);
  fanout::Shared<Tensor<int, 1>> decoder = encoder;
  bool forward(View<const int, 1>) { return encoder->data() == decoder->data(); }
};

/// Counts and averages as a batch norm does.
struct Statistics {
  fanout::Mean<double> running_mean;
  fanout::Sum<int> rows_seen;
  fanout::PerReplica<std::vector<int>> log;

  double forward(View<const int, 1> x) {
    double sum = 0;
    for (const int value : x) sum += value;
    running_mean.value += 0.5 * (sum / static_cast<double>(x.size()) - running_mean.value);
    rows_seen.value += static_cast<int>(x.size());
    log->push_back(x[0]);
    return running_mean.value;
  }
};

/// The mode of a library that has one for each thread.
thread_local int mode = 0;

/// The mode of the thread that made this, set on another one for as long as something entered lives.
class CallersMode {
 public:
  class Entered {
   public:
    explicit Entered(int entered) : before_(std::exchange(mode, entered)) {}
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered() { mode = before_; }

   private:
    int before_;
  };
  Entered enter() const { return Entered(mode_); }

 private:
  int mode_ = mode;
};

/// Tells the mode that it runs in, and changes it.
struct TellMode {
  static CallersMode caller_state() { return {}; }
  int forward(View<const int, 1>) const { return std::exchange(mode, -1); }
};

/// Throws on every shard, on the last one first.
struct Thrower {
  std::atomic<bool>* last_has_thrown;
  int forward(Context auto& ctx, View<const int, 1>) const {
    if (ctx.rank() == 0) throw 42;
    if (ctx.rank() == 2) {
      *last_has_thrown = true;
      throw std::invalid_argument("two");
    }
    while (!*last_has_thrown) std::this_thread::yield();
    throw std::out_of_range("one");
  }
};

}  // namespace

TEST_CASE("rule 53: replicas live as long as the model, and are refreshed only after it has changed") {
  Counted::copies = 0;
  ParallelModel model{Counted{}, host_devices(2)};
  for (int call = 0; call < 3; ++call) model(count_to(4));
  CHECK(Counted::copies == 2);
  CHECK(values(model(count_to(4))) == std::vector{4, 4});
  model.update([](Counted&) {});
  CHECK(values(model(count_to(4))) == std::vector{1, 1});
  CHECK(Counted::copies == 4);
}

TEST_CASE("rule 54: replicas of a model with a const forward are the model itself, on every host device") {
  const ParallelModel model{Weighted{}, host_devices(2)};
  const int* const weight = model.model().weight.data();
  CHECK(model(count_to(2)) == std::vector{weight, weight});
  CHECK(&model.replica(1).model() == &model.model());
}

TEST_CASE("rules 55 and 123: the replicas' counts and averages are combined after each call, in all of them") {
  const ParallelModel model{Statistics{}, host_devices(2)};
  Statistics alone;
  const auto x = count_to(5);
  for (int call = 1; call <= 3; ++call) {
    model(x);
    alone.forward(x);
    const Statistics* const all[] = {&model.model(), &model.replica(0).model(), &model.replica(1).model()};
    for (const Statistics* one : all) {
      CHECK(one->running_mean.value == doctest::Approx(alone.running_mean.value));
      CHECK(one->rows_seen.value == 5 * call);
    }
  }
  CHECK(*model.replica(1).model().log == std::vector{3, 3, 3});
}

TEST_CASE("rules 56 and 59: a replica keeps its own changes, and no other replica sees them") {
  const ParallelModel model{Network{}, host_devices(2)};
  model(count_to(4));
  model(count_to(4));
  CHECK(model.replica(0).model().log == std::vector{0, 0});
  CHECK(model.replica(1).model().log == std::vector{2, 2});
  CHECK(model.replica(1).model().layers[0][0] == 4);
  CHECK(model.model().log.empty());
  CHECK(model.model().layers[0][0] == 0);
}

TEST_CASE("rule 60: two parts of a model that share an object share it in every replica") {
  const ParallelModel model{Tied{}, host_devices(2)};
  for (const bool one : model(count_to(2))) CHECK(one);
  CHECK_FALSE(model.replica(1).shares_original());
  CHECK(model.replica(1).model().encoder.get() == model.replica(1).model().decoder.get());
}

TEST_CASE("rules 61, 62, 63 and 74: a replica is the user's type with all of its members, and can be copied from") {
  const ParallelModel model{Network{}, host_devices(2)};
  model(count_to(4));
  const Network saved = model.replica(1).model();
  CHECK(saved.layers.size() == 2);
  CHECK(values(saved.layers[1]) == std::vector{0, 1, 2});
  CHECK(values(saved.heads.at("head")) == std::vector{0, 1});
  CHECK_FALSE(saved.bias.has_value());
  CHECK(saved.log == std::vector{2});
}

TEST_CASE("rule 67: replicas are as the model is at the moment of the call") {
  ParallelModel model{Network{}, host_devices(2)};
  for (const bool training : model(count_to(2))) CHECK(training);
  model.update([](Network& network) { network.training = false; });
  for (const bool training : model(count_to(2))) CHECK_FALSE(training);
}

TEST_CASE("rule 69: there is no parallel model without a model") {
  static_assert(!std::is_default_constructible_v<ParallelModel<Network>>);
  static_assert(std::is_constructible_v<ParallelModel<Network>, Network>);
}

TEST_CASE("rule 73: complex numbers stay what they are, in the model and in results") {
  using Complex = std::complex<float>;
  Tensor<Complex, 2> weight(1, 2);
  weight(0, 1) = {0, 1};
  const ParallelModel model{[weight](View<const int, 1>) mutable { return weight; }, host_devices(2)};
  const auto result = model(count_to(2));
  static_assert(std::is_same_v<decltype(result), const Tensor<Complex, 2>>);
  CHECK(result.extents() == fanout::Extents<2>{2, 2});
  CHECK(result(1, 1) == Complex(0, 1));
}

TEST_CASE("rule 75: nothing is left of a model that is gone") {
  Counted::alive = 0;
  {
    const ParallelModel model{Counted{}, host_devices(3)};
    model(count_to(9));
    CHECK(Counted::alive == 4);  // the original and its copies
    model(count_to(9));
    CHECK(Counted::alive == 4);
  }
  CHECK(Counted::alive == 0);
}

TEST_CASE("rule 77: device threads live across calls, and one shard runs on the caller's thread") {
  const ParallelModel model{[](View<const int, 1>) { return std::vector{std::this_thread::get_id()}; },
                            host_devices(2)};
  std::set<std::thread::id> threads;
  for (int call = 0; call < 20; ++call) {
    for (const std::thread::id id : model(count_to(2))) threads.insert(id);
  }
  CHECK(threads.size() <= 2);
  CHECK(model(count_to(1))[0] == std::this_thread::get_id());
}

TEST_CASE("rule 78: as many models as inputs are needed") {
  const auto devices = host_devices(2);
  const auto inputs = fanout::scatter(devices, count_to(4));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { (void)fanout::apply(std::vector<Tell>(3), devices, inputs); }),
             "The number of modules 3 is not equal to the number of inputs 2"));
}

TEST_CASE("rule 79: the pieces of all arguments are the arguments of forward") {
  const auto devices = host_devices(2);
  const auto dot = [](View<const int, 1> x, View<const int, 1> y) {
    int sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
    return sum;
  };
  const auto inputs = fanout::scatter(devices, count_to(4), count_to(4));
  CHECK(values(fanout::gather(fanout::apply(std::tie(dot, dot), devices, inputs))) == std::vector{1, 13});
}

TEST_CASE("rule 80: each shard runs with its own device entered, and all are left afterwards") {
  ToyDevice::entered = ToyDevice::left = ToyDevice::synchronized = 0;
  const ParallelModel model{[](Context auto& ctx, View<const int, 1>) {
                              CHECK(ToyDevice::entered > ToyDevice::left);
                              return ctx.device().id();
                            },
                            fanout::AllVisible<ToyDevice>{}};
  const auto ids = model(count_to(4));
  CHECK(ids[0] == DeviceId{.kind = "toy", .index = 0});
  CHECK(ids[1] == DeviceId{.kind = "toy", .index = 1});
  CHECK(ToyDevice::entered == 2);
  CHECK(ToyDevice::left == 2);
  CHECK(ToyDevice::synchronized == 2);
}

TEST_CASE("rules 81 and 82: a model runs in its caller's thread state and restores it") {
  mode = 7;
  for (int devices = 1; devices <= 2; ++devices) {
    const ParallelModel model{TellMode{}, host_devices(devices)};
    CHECK(values(model(count_to(2))) == std::vector<int>(static_cast<std::size_t>(devices), 7));
    CHECK(mode == 7);
  }
  mode = 0;
}

TEST_CASE("rule 83: each shard has the device that its plan names") {
  const auto devices = host_devices(3);
  const auto x = count_to(4);
  const fanout::Plan plan{{.rows = {0, 1}, .device = 2}, {.rows = {1, 3}, .device = 0}, {.rows = {3, 4}, .device = 2}};
  CHECK(fanout::gather(fanout::apply(fanout::replicate(Tell{}, devices), fanout::scatter(plan, x))) ==
        Texts{"host:2[0, 1)", "host:0[1, 3)", "host:2[3, 4)"});
}

TEST_CASE("rule 84: results stand in the order of the shards, whichever ends first") {
  std::atomic<bool> last_has_ended = false;
  const ParallelModel model{[&](Context auto& ctx, View<const int, 1> x) {
                              if (ctx.rank() == 1) last_has_ended = true;
                              while (!last_has_ended) std::this_thread::yield();
                              return x;
                            },
                            host_devices(2)};
  CHECK(values(model(count_to(4))) == std::vector{0, 1, 2, 3});
}

TEST_CASE("rule 85: all replicas end before an error is thrown, and the model works afterwards") {
  std::atomic<bool> thrown = false;
  std::atomic<bool> ended = false;
  const ParallelModel model{[&](Context auto& ctx, View<const int, 1> x, bool fails) {
                              if (fails && ctx.rank() == 0) {
                                thrown = true;
                                throw 1;
                              }
                              while (!thrown) std::this_thread::yield();
                              ended = true;
                              return x;
                            },
                            host_devices(2)};
  CHECK_THROWS_AS(model(count_to(4), true), ReplicaError);
  CHECK(ended);
  CHECK(model(count_to(4), false).size() == 4);
}

TEST_CASE("rules 86, 87 and 88: an error has all that was thrown, of any type, the lowest rows first, and says where") {
  std::atomic<bool> last_has_thrown = false;
  const ParallelModel model{Thrower{&last_has_thrown}, host_devices(3)};
  try {
    model(count_to(6));
    FAIL("nothing was thrown");
  } catch (const ReplicaError& error) {
    REQUIRE(error.failures().size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(error.failures()[i].shard == i);
    CHECK_THROWS_AS(error.rethrow(), int);
    CHECK(*error.get_if<int>() == 42);
    CHECK(std::string(error.get_if<std::out_of_range>()->what()) == "one");
    CHECK(says(error.what(), "Caught", "in replica 0 on device host:0",
               "Caught std::out_of_range in replica 1 on device host:1", "one",
               "Caught std::invalid_argument in replica 2 on device host:2, rows [4, 6)", "two"));
  }
}

TEST_CASE("rule 89: after a deadline replicas are asked to stop, late ones are named, and the rest is kept") {
  std::vector<std::size_t> late;
  const ParallelModel model{
      [](Context auto& ctx, View<const int, 1> x) {
        while (ctx.rank() == 1 && !ctx.stop_requested()) std::this_thread::yield();
        return x;
      },
      host_devices(2),
      fanout::Options{.deadline = std::chrono::milliseconds(200),
                      .late = [&late](const fanout::LateShard& one) { late.push_back(one.shard); }}};
  try {
    model(count_to(4));
    FAIL("nothing was thrown");
  } catch (const fanout::Timeout& timeout) {
    CHECK(late == std::vector<std::size_t>{1});
    REQUIRE(timeout.late().size() == 1);
    CHECK(timeout.late()[0].device == DeviceId{.kind = "host", .index = 1});
    const auto* const in_time = timeout.results<Tensor<int, 1>>();
    REQUIRE(in_time != nullptr);
    CHECK(values(*in_time) == std::vector{0, 1});
  }
}

TEST_CASE("rule 90: one model may stand there twice, and is used by both shards") {
  const auto devices = host_devices(2);
  const Weighted model;
  const auto inputs = fanout::scatter(devices, count_to(2));
  const int* const weight = model.weight.data();
  CHECK(fanout::gather(fanout::apply(std::tie(model, model), devices, inputs)) == std::vector{weight, weight});
}
