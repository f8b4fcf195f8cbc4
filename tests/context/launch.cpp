// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

#include <fanout/call/replica_error.hpp>
#include <fanout/context/launch.hpp>
#include <fanout/parallel/parallel_model.hpp>

namespace {

struct AddRandom {
  fanout::View<double, 1> y;
  fanout::View<const double, 1> x;
  fanout::RandomStream first;
  void operator()(std::size_t i) const { y[i] = x[i] + first.after(i).uniform(); }
};

struct Model {
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), AddRandom{y, x, ctx.random(0)});
    return y;
  }
};

fanout::Tensor<double, 1> on(int devices) {
  const fanout::ParallelModel model{Model{}, fanout::host_devices(devices)};
  return model(std::vector{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0});
}

}  // namespace

TEST_CASE("a launch calls the function for each row, with the same result on any number of devices") {
  const fanout::Tensor<double, 1> alone = on(1);
  REQUIRE(alone.size() == 7);
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(alone[i] > static_cast<double>(i) + 1);
    CHECK(alone[i] < static_cast<double>(i) + 2);
  }
  for (const int devices : {2, 3, 9}) {
    const fanout::Tensor<double, 1> shared = on(devices);
    REQUIRE(shared.size() == 7);
    for (std::size_t i = 0; i < 7; ++i) CHECK(shared[i] == alone[i]);
  }
}

TEST_CASE("an exception from a launched function on a host device is the replica's failure") {
  struct Throws {
    void operator()(std::size_t i) const {
      if (i == 1) throw std::runtime_error("one");
    }
  };
  const fanout::ParallelModel model{
      [](fanout::Context auto& ctx, fanout::View<const double, 1> x) { fanout::launch(ctx, x.size(), Throws{}); },
      fanout::host_devices(1)};
  CHECK_THROWS_WITH_AS(model(std::vector{1.0, 2.0}), doctest::Contains("one"), fanout::ReplicaError);
}
