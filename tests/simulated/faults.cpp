// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simulated devices that fail, or whose memory does not suffice, and what their models do then.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/simulated.hpp>

using fanout::Context;
using fanout::Options;
using fanout::ParallelModel;
using fanout::simulated_devices;
using fanout::Tensor;
using fanout::View;

namespace {

struct Copies {
  auto forward(Context auto& ctx, View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i];
    return y;
  }
};

/// 80 bytes of parameters, and scratch.
struct Needs {
  Tensor<double, 1> weight = Tensor<double, 1>(10);
  std::size_t scratch = 0;
  std::size_t forward(Context auto& ctx, View<const double, 1>) const {
    return fanout::empty<double>(ctx, scratch).size();
  }
};

Tensor<double, 1> ones(std::size_t size) { return Tensor<double, 1>::full({size}, 1); }

}  // namespace

TEST_CASE("a shard that fails is a DeviceError in a ReplicaError, at its time, and the next call works") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6}, {.rows_per_second = 1e5, .fail_at = 2}});
  const ParallelModel model{Copies{}, devices};
  CHECK(model(ones(10)) == ones(10));
  CHECK(devices[0].time() == 50'000);
  try {
    model(ones(10));
    FAIL("did not fail");
  } catch (const fanout::ReplicaError& error) {
    REQUIRE(error.failures().size() == 1);
    CHECK(error.failures()[0].device == devices[1].id());
    CHECK(error.failures()[0].rows == fanout::RowRange{5, 10});
    CHECK(error.get_if<fanout::DeviceError>() != nullptr);
  }
  CHECK(devices[0].time() == 100'000);  // the caller learns of it when it happens
  CHECK(model(ones(10)) == ones(10));
  CHECK(devices[0].time() == 150'000);
}

TEST_CASE("a lost device fails in each call") {
  const auto devices = simulated_devices({{}, {.fail_at = 3, .failures = SIZE_MAX}});
  const ParallelModel model{Copies{}, devices, Options{.rethrow_single = true}};
  for (int i = 0; i < 2; ++i) CHECK(model(ones(10)) == ones(10));
  for (int i = 0; i < 5; ++i) CHECK_THROWS_AS(model(ones(10)), fanout::DeviceError);
  const ParallelModel other{Copies{}, fanout::DeviceSet<fanout::SimulatedDevice>(std::vector{devices[0]})};
  CHECK(other(ones(10)) == ones(10));
}

TEST_CASE("an exception of forward takes no time, and is no shard that ran") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6, .fail_at = 2}});
  bool throws = true;
  const ParallelModel model{[&throws](View<const double, 1> x) {
                              if (throws) throw 3;
                              return x.size();
                            },
                            devices};
  CHECK_THROWS_AS(model(ones(10)), fanout::ReplicaError);
  CHECK(devices[0].time() == 0);
  throws = false;
  CHECK(model(ones(10)).size() == 1);
  CHECK_THROWS_AS(model(ones(10)), fanout::ReplicaError);
}

TEST_CASE("a batch that does not fit into a device's memory is OutOfMemory, and nothing of it stays there") {
  const auto devices = simulated_devices({{}, {.memory = 1000}});
  const ParallelModel model{Copies{}, devices};
  CHECK_THROWS_AS(model(ones(252)), fanout::OutOfMemory);  // 126 rows of 8 bytes, in scatter
  CHECK(devices[1].free_memory() == 1000);
  try {
    model(ones(126));  // 63 rows of 8 bytes, twice: in output
    FAIL("did not throw");
  } catch (const fanout::ReplicaError& error) {
    REQUIRE(error.failures().size() == 1);
    CHECK(error.failures()[0].device == devices[1].id());
    CHECK(error.get_if<fanout::OutOfMemory>() != nullptr);
  }
  CHECK(devices[1].free_memory() == 1000);
  CHECK(model(ones(124)) == ones(124));
  CHECK(devices[1].free_memory() == 1000);
}

TEST_CASE("the memory of a device limits scratch and parameters, too") {
  const auto devices = simulated_devices({{.memory = 200}});
  {
    ParallelModel model{Needs{}, devices};
    CHECK(model(ones(1))[0] == 0);
    CHECK(devices[0].free_memory() == 120);
    model.update([](Needs& needs) { needs.scratch = 14; });
    CHECK(model(ones(1))[0] == 14);
    model.update([](Needs& needs) { needs.scratch = 15; });
    CHECK_THROWS_AS(model(ones(1)), fanout::ReplicaError);
    CHECK(devices[0].free_memory() == 120);
  }
  CHECK(devices[0].free_memory() == 200);
  const ParallelModel large{Needs{.weight = Tensor<double, 1>(26)}, devices};
  CHECK_THROWS_AS(large(ones(1)), fanout::ReplicaError);
  CHECK(devices[0].free_memory() == 200);
}

TEST_CASE("the caller learns when the copy has ended that a batch did not fit") {
  const auto devices = simulated_devices({{}, {.bandwidth = 1e9, .memory = 1000}});
  const ParallelModel model{[](View<const double, 1> x, View<const double, 1> y) { return x.size() + y.size(); },
                            devices};
  CHECK_THROWS_AS(model(ones(200), ones(200)), fanout::OutOfMemory);  // 800 bytes fit, and 800 more do not
  CHECK(devices[0].time() == 100'000);                                // the other device's shard
  const ParallelModel other{[](View<const double, 1> x, View<const double, 1> y) { return x.size() + y.size(); },
                            fanout::DeviceSet<fanout::SimulatedDevice>(std::vector{devices[1]})};
  CHECK_THROWS_AS(other(ones(100), ones(100)), fanout::OutOfMemory);
  CHECK(devices[0].time() == 100'800);
}

TEST_CASE("results hold memory of the main device until they are gone") {
  const auto devices = simulated_devices({{.memory = 1000}});
  const ParallelModel model{Copies{}, devices};
  {
    const auto y = model(ones(50));
    CHECK(devices[0].free_memory() == 600);
  }
  CHECK(devices[0].free_memory() == 1000);
}
