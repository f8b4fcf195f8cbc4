// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include <fanout/fanout.hpp>

namespace {

// [walks]
/// The ends of random walks of a hundred steps, one walk a row.
struct Walks {
  auto forward(fanout::Context auto& ctx, fanout::RowRange walks) const {
    auto ends = fanout::output<double>(ctx);
    for (const auto [local, global] : walks.enumerate()) {
      auto random = ctx.random(local);
      std::exponential_distribution<double> pause(2.0);
      double position = 0;
      for (int step = 0; step < 100; ++step) position += random.normal() * pause(random);
      ends[local] = position;
    }
    return ends;
  }
};
// [/walks]

}  // namespace

TEST_CASE("random walks are the same on any number of devices") {
  // [use_walks]
  const fanout::ParallelModel one{Walks(), fanout::host_devices(1), fanout::Options{.seed = 42}};
  const fanout::ParallelModel seven{Walks(), fanout::host_devices(7), fanout::Options{.seed = 42}};
  const bool same = fanout::to_host(one(fanout::Range{1000})) == fanout::to_host(seven(fanout::Range{1000}));  // true
  // [/use_walks]
  CHECK(same);
}
