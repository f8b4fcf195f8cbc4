// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/meeting.hpp"
#include "support/message_of.hpp"
#include "support/toy_device.hpp"

using fanout::broadcast;
using fanout::Context;
using fanout::host_devices;
using fanout::Plan;
using fanout::replicate;
using fanout::scatter;
using fanout_test::message_of;
using fanout_test::says;

namespace {

struct Model {
  auto forward(Context auto& ctx, std::span<const int> x, const std::string& text) const {
    if (text == "throw") throw std::runtime_error(std::to_string(ctx.rank()));
    return std::pair{static_cast<int>(ctx.rank()), std::vector<int>(x.begin(), x.end())};
  }
};

struct Anything {
  struct Own {
    int value;
  };
  Own forward(std::span<const int> x) const { return {x[0]}; }
};

struct Plus {
  int summand;
  int forward(int x) const { return x + summand; }
};
struct Times {
  int factor;
  int forward(int x) const { return x * factor; }
};

/// An array whose pieces cannot be made for the second shard.
struct Brittle {
  std::vector<int> elements;
};

const Plan plan{{.rows = {0, 1}, .device = 1}, {.rows = {1, 4}, .device = 0}, {.rows = {4, 5}, .device = 1}};
const std::vector<int> five{0, 1, 2, 3, 4};

std::vector<int> listed(const fanout::Tensor<int, 1>& values) { return {values.begin(), values.end()}; }

}  // namespace

template <>
struct fanout::leaf_traits<Brittle> : fanout::leaf_traits<std::vector<int>> {
  static std::size_t rows(const Brittle& x) { return x.elements.size(); }
  static piece_type piece(const Brittle& x, std::size_t begin, std::size_t end) {
    if (begin == 1) throw std::out_of_range("no pieces");
    return piece_type(x.elements).subspan(begin, end - begin);
  }
};

TEST_CASE("scatter, replicate, apply and gather make a call, with more shards than devices") {
  const auto replicas = replicate(Model{}, host_devices(2));
  const std::string text = "text";
  auto outputs = fanout::apply(replicas, scatter(plan, five, text));
  REQUIRE(outputs.size() == 3);
  CHECK(outputs.plan() == plan);
  CHECK(outputs[1].first == 1);
  CHECK(outputs[1].second == std::vector{1, 2, 3});
  const auto [ranks, rows] = fanout::gather(std::move(outputs));
  CHECK(listed(ranks) == std::vector{0, 1, 2});
  CHECK(rows == five);
}

TEST_CASE("a plain apply is fanout's, though argument-dependent lookup finds std::apply too") {
  using fanout::apply;
  auto replicas = replicate(Model{}, host_devices(2));
  auto inputs = scatter(plan, five, std::string("text"));
  CHECK(apply(replicas, inputs).size() == 3);
  CHECK(apply(std::as_const(replicas), scatter(plan, five, std::string("text"))).size() == 3);
  CHECK(apply(replicate(Model{}, host_devices(2)), std::as_const(inputs)).size() == 3);
}

TEST_CASE("outputs outlive the replicas, devices and inputs that they were made from") {
  auto outputs = fanout::apply(replicate(Model{}, host_devices(2)),
                               scatter(host_devices(2), std::vector(five), std::string("text")));
  const auto [ranks, rows] = fanout::gather(std::move(outputs));
  CHECK(rows == five);
}

TEST_CASE("inputs are scattered once and applied often, by different replicas") {
  const auto devices = host_devices(2);
  const auto inputs = scatter(devices, 10);
  const auto plus = replicate(Plus{1}, devices);
  const auto times = replicate(Times{2}, devices);
  for (int run = 0; run < 2; ++run) {
    CHECK(listed(fanout::gather(fanout::apply(plus, inputs))) == std::vector{11, 11});
    CHECK(listed(fanout::gather(fanout::apply(times, inputs))) == std::vector{20, 20});
  }
}

TEST_CASE("results that cannot be gathered can still be looked at shard by shard") {
  const auto replicas = replicate(Anything{}, host_devices(2));
  const auto outputs = fanout::apply(replicas, scatter(plan, five));
  CHECK(outputs[2].value == 4);
}

TEST_CASE("plans for other devices are refused") {
  const auto inputs = scatter(plan, five, std::string("text"));
  const auto one = replicate(Model{}, host_devices(1));
  CHECK_THROWS_AS((void)fanout::apply(one, inputs), fanout::InvalidArgument);
  const auto devices = host_devices(1);
  CHECK_THROWS_AS((void)fanout::apply(std::array<Model, 3>{}, devices, inputs), fanout::InvalidArgument);
}

TEST_CASE("an exception from forward on a shard is a failure of that shard's device") {
  const auto inputs = scatter(plan, five, std::string("throw"));
  const auto devices = host_devices(2);
  const auto replicas = replicate(Model{}, devices);
  const auto check = [](const auto& call) {
    try {
      call();
      CHECK_MESSAGE(false, "nothing was thrown");
    } catch (const fanout::ReplicaError& error) {
      REQUIRE(error.failures().size() == 3);
      CHECK(error.failures()[0].device.index == 1);
      CHECK(error.failures()[1].device.index == 0);
      CHECK(error.failures()[2].rows == fanout::RowRange{4, 5});
    }
  };
  check([&] { (void)fanout::apply(replicas, inputs); });
  check([&] { (void)fanout::apply(std::vector<Model>(3), devices, inputs); });
}

TEST_CASE("an exception while making a shard's arguments is thrown as itself, after all shards end") {
  const auto replicas = replicate(Model{}, host_devices(2));
  const auto inputs = scatter(plan, Brittle{five}, std::string("text"));
  CHECK_THROWS_AS((void)fanout::apply(replicas, inputs), std::out_of_range);
}

TEST_CASE("different models run on the same inputs, each on its device") {
  const auto devices = host_devices(2);
  const auto inputs = scatter(devices, 10);
  CHECK(listed(fanout::gather(fanout::apply(std::tuple{Plus{1}, Times{3}}, devices, inputs))) == std::vector{11, 30});
  CHECK(listed(fanout::gather(fanout::apply(std::pair{Times{4}, Plus{1}}, devices, inputs))) == std::vector{40, 11});
  CHECK(listed(fanout::gather(fanout::apply(std::array{Plus{1}, Plus{2}}, devices, inputs))) == std::vector{11, 12});
  CHECK(listed(fanout::gather(fanout::apply(std::vector{Plus{1}, Plus{2}}, devices, inputs))) == std::vector{11, 12});
  const auto where = [](Context auto& ctx, int) { return ctx.device().id(); };
  const auto on = fanout::apply(std::tie(where, where), devices, inputs);  // one model may stand there twice
  CHECK(on[0] == devices[0].id());
  CHECK(on[1] == devices[1].id());
}

TEST_CASE("models run on devices of different kinds, entered and synchronized") {
  using fanout_test::ToyDevice;
  const auto devices = host_devices(1) | fanout::AllVisible<ToyDevice>{}.select();
  const int entered = ToyDevice::entered;
  const int synchronized = ToyDevice::synchronized;
  const auto outputs = fanout::apply(std::tuple{Plus{1}, Plus{2}, Times{3}}, devices, scatter(devices, 10));
  CHECK(outputs[2] == 30);
  CHECK(ToyDevice::entered == entered + 2);
  CHECK(ToyDevice::synchronized == synchronized + 2);
}

TEST_CASE("models run at the same time, and more of them than devices do") {
  const auto devices = host_devices(2);
  fanout_test::Meeting rendezvous(2);
  const auto meet = [&rendezvous](int x) {
    rendezvous.come();
    return x;
  };
  CHECK(fanout::apply(std::tie(meet, meet), devices, scatter(devices, 1)).size() == 2);

  const Plan three{{.rows = {}, .device = 0}, {.rows = {}, .device = 1}, {.rows = {}, .device = 0}};
  const auto outputs = fanout::apply(std::vector{Plus{1}, Plus{2}, Plus{3}}, devices, scatter(three, 10));
  CHECK(outputs[2] == 13);
}

TEST_CASE("models may return nothing") {
  const auto devices = host_devices(2);
  std::atomic<int> runs = 0;
  const auto count = [&runs](int) { ++runs; };
  fanout::gather(fanout::apply(std::tie(count, count), devices, scatter(devices, 1)));
  CHECK(runs == 2);
}

TEST_CASE("as many models as inputs are needed") {
  const auto devices = host_devices(2);
  const auto inputs = scatter(devices, 10);
  const char* const words = "The number of modules 3 is not equal to the number of inputs 2";
  CHECK(says(
      message_of<fanout::InvalidArgument>([&] { (void)fanout::apply(std::vector<Plus>(3, Plus{1}), devices, inputs); }),
      words));
  CHECK(says(message_of<fanout::InvalidArgument>([&] {
               (void)fanout::apply(std::tuple{Plus{1}, Plus{1}, Times{2}}, devices, inputs);
             }),
             words));
}

TEST_CASE("several models that call the same inner model do not deadlock") {
  const auto devices = host_devices(2);
  const fanout::ParallelModel inner{Plus{1}, devices};
  const auto outer = [&inner](int x) { return inner(x)[0]; };
  CHECK(listed(fanout::gather(fanout::apply(std::tie(outer, outer), devices, scatter(devices, 1)))) ==
        std::vector{2, 2});
}
