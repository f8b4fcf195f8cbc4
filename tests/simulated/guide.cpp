// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of docs/guide/simulated.md and docs/guide/unequal.md.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>

using namespace std::chrono_literals;

namespace {

const auto squares = [](fanout::Context auto& ctx, fanout::View<const float, 1> x) {
  auto y = fanout::output<float>(ctx);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
  return y;
};

}  // namespace

TEST_CASE("the code of docs/guide/simulated.md") {
  // [devices]
  const auto devices = fanout::simulated_devices({
      {.rows_per_second = 1e6, .launch = 10us},
      {.rows_per_second = 8e6, .launch = 10us, .bandwidth = 1e9, .latency = 2us, .memory = 1 << 30, .fail_at = 3},
  });
  // [/devices]
  const fanout::Tensor<float, 1> x(9000);
  // [time]
  const fanout::ParallelModel even{squares, devices};
  const fanout::ParallelModel weighted{squares, devices, fanout::Options{.split = fanout::WeightedSplit{1, 8}}};
  const auto time_of = [&](const auto& model) {
    const std::int64_t begin = devices[0].time();
    model(x);
    return devices[0].time() - begin;
  };
  const std::int64_t slow = time_of(even);      // 4,530 us: 4500 rows on the first device, then a copy of 18 kB
  const std::int64_t fast = time_of(weighted);  // 1,078 us: 8000 rows on the second device between copies of 32 kB
  // [/time]
  CHECK(slow == 4'530'000);
  CHECK(fast == 1'078'000);
  std::vector<std::string> failed;
  // [fault]
  try {
    even(x);  // the third shard of the second device
  } catch (const fanout::ReplicaError& error) {
    if (error.get_if<fanout::DeviceError>() != nullptr) {
      for (const fanout::Failure& failure : error.failures()) failed.push_back(to_string(failure.device));
    }
  }
  // [/fault]
  CHECK(failed == std::vector{to_string(devices[1].id())});
  CHECK(time_of(weighted) == 1'078'000);
}

TEST_CASE("the code of docs/guide/unequal.md") {
  const auto devices = fanout::simulated_devices({{.rows_per_second = 1e6}, {.rows_per_second = 3e6}});
  const fanout::Tensor<float, 1> x(8000);
  const fanout::ParallelModel model{squares, devices, fanout::Options{.split = fanout::MeasuredSplit{}}};
  for (int call = 0; call < 2; ++call) model(x);
  // [weights]
  const auto learnt = model.split<fanout::MeasuredSplit>();          // a copy of what the model has learnt
  const std::vector<double> weights = learnt.weights(8000, 2);       // {0.25, 0.75}, for batches of 8000 rows
  const fanout::MeasuredSplit begins_there{weights};                 // for a later run: learns on from there
  const fanout::WeightedSplit stays_there = learnt.frozen(8000, 2);  // learns no more
  // [/weights]
  CHECK(weights[0] == doctest::Approx(0.25));
  CHECK(weights[1] == doctest::Approx(0.75));
  CHECK(model.report().devices()[1].next_share == doctest::Approx(0.75));
  CHECK(begins_there(8000, 2)[0].rows.size() == doctest::Approx(2000).epsilon(0.001));
  CHECK(stays_there(8000, 2)[0].rows.size() == doctest::Approx(2000).epsilon(0.001));
}
