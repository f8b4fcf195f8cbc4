// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::Context;
using fanout::DeviceId;
using fanout::gathered_t;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::PerShard;
using fanout::Tensor;
using fanout::View;

namespace {

static_assert(std::is_same_v<gathered_t<PerShard<float>>, PerShard<float>>);
static_assert(std::is_same_v<gathered_t<std::vector<PerShard<bool>>>, std::vector<PerShard<bool>>>, "trees");

template <class T>
std::vector<T> values(const PerShard<T>& per_shard) {
  return std::vector<T>(per_shard.begin(), per_shard.end());
}

/// No default constructor, as a DeviceId has none. No one can look into it.
struct Counted {
  explicit Counted(int n) : number(n) {}
  int number;
};

using Trees = std::pair<Counted, std::map<std::string, std::optional<std::variant<int, Counted>>>>;
static_assert(std::is_same_v<gathered_t<PerShard<Trees>>, PerShard<Trees>>);

}  // namespace

TEST_CASE("a PerShard in forward holds one value or none") {
  PerShard<int> one = 4;
  CHECK(values(one) == std::vector{4});
  one = 5;
  CHECK(one.size() == 1);
  CHECK(one[0] == 5);
  const PerShard<std::string> none;
  CHECK(none.size() == 0);
  CHECK(none.begin() == none.end());
}

TEST_CASE("a gathered PerShard holds the values of all shards in row order") {
  struct Result {
    PerShard<DeviceId> devices;
    PerShard<bool> first;
    PerShard<std::string> names;
    PerShard<Tensor<int, 1>> rows;
    PerShard<std::pair<Counted, int>> counted;
  };
  const auto forward = [](Context auto& ctx, View<const int, 1> x) {
    auto rows = fanout::output<int>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) rows[i] = static_cast<int>(ctx.rank());
    return Result{ctx.device().id(), ctx.rank() == 0, std::string("n") + to_string(ctx.device().id()),
                  Tensor<int, 1>(rows), std::pair{Counted(static_cast<int>(x.size())), 5}};
  };
  for (int devices : {1, 3}) {
    ParallelModel model{forward, host_devices(devices)};
    const Result result = model(Tensor<int, 1>(7));
    REQUIRE(result.devices.size() == static_cast<std::size_t>(devices));
    CHECK(result.first[0]);
    CHECK(result.names[0] == "nhost:0");
    if (devices == 1) continue;
    CHECK(to_string(result.devices[2]) == "host:2");
    CHECK(values(result.first) == std::vector{true, false, false});
    CHECK(result.names[2] == "nhost:2");
    CHECK(result.rows[1].extent(0) == 2);
    CHECK(result.rows[2][1] == 2);
    CHECK(result.counted[0].first.number == 3);
  }
}

TEST_CASE("a function that reduces the other members need not compile for a PerShard") {
  struct Result {
    int number;
    PerShard<std::string> who;
  };
  const auto half_plus = [](const auto& a, const auto& b) { return a / 2 + b; };
  const ParallelModel model{[&](Context auto& ctx, View<const int, 1>) {
                              return fanout::reduce(Result{8, to_string(ctx.device().id())}, half_plus);
                            },
                            host_devices(3)};
  const Result result = model(Tensor<int, 1>(7));
  CHECK(result.number == (8 / 2 + 8) / 2 + 8);
  CHECK(values(result.who) == std::vector<std::string>{"host:0", "host:1", "host:2"});
}

TEST_CASE("a copy has values of its own") {
  PerShard<std::string> one = std::string("a");
  const PerShard<std::string> copy = one;
  one = std::string("b");
  CHECK(copy[0] == "a");
  CHECK(copy.begin() != one.begin());
}
