// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <sstream>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

namespace {

struct Sum {
  auto forward(fanout::View<const double, 1> x) const {
    double sum = 0;
    for (const double value : x) sum += value;
    return fanout::psum(sum);
  }
};

}  // namespace

TEST_CASE(
    "the stages of a call can be used one by one, and the results of each shard are there before they are gathered") {
  std::ostringstream log;
  const std::vector<double> batch{1, 2, 3, 4, 5, 6, 7};
  // [stages]
  const auto devices = fanout::host_devices(3);
  const auto replicas = fanout::replicate(Sum(), devices);
  const auto inputs =
      fanout::scatter(fanout::Plan{{.rows = {0, 1}, .device = 2}, {.rows = {1, 7}, .device = 0}}, batch);
  auto outputs = fanout::apply(replicas, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const fanout::Shard& shard = outputs.plan()[i];
    log << "rows " << to_string(shard.rows) << " on " << to_string(devices[shard.device].id()) << '\n';
  }
  const double sum = fanout::gather(std::move(outputs));
  // [/stages]
  CHECK(sum == 28);
  CHECK(log.str() == "rows [0, 1) on host:2\nrows [1, 7) on host:0\n");
}
