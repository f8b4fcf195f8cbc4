// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/parallel/on_all.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::broadcast;
using fanout::host_devices;
using fanout::on_all;
using fanout::ParallelModel;

TEST_CASE("without a split argument only on_all runs forward on every device") {
  const ParallelModel model{[](fanout::Context auto& ctx, const std::vector<int>& all) {
                              CHECK(all.size() == 3);
                              CHECK(ctx.rows().empty());
                              return ctx.device().id().index;
                            },
                            host_devices(3)};
  const std::vector list{1, 2, 3};
  const auto one = model(broadcast(list));
  CHECK(std::vector(one.begin(), one.end()) == std::vector{0});
  const auto all = model(on_all(), broadcast(list));
  CHECK(std::vector(all.begin(), all.end()) == std::vector{0, 1, 2});
}

TEST_CASE("on_all is not passed to forward and needs no other argument") {
  const ParallelModel model{[] { return 1; }, host_devices(4)};
  CHECK(model().extent(0) == 1);
  CHECK(model(on_all()).extent(0) == 4);
}

TEST_CASE("on_all runs every device whatever the split makes of no rows") {
  const ParallelModel model{[](fanout::Context auto& ctx) { return ctx.device().id().index; },
                            host_devices(3),
                            {.split = [](std::size_t rows, std::size_t) {
                              fanout::Plan plan;
                              plan.add({.rows = {0, rows}, .device = 2});
                              return plan;
                            }}};
  const auto devices = model(on_all());
  CHECK(std::vector(devices.begin(), devices.end()) == std::vector{0, 1, 2});
}

TEST_CASE("a split argument decides which devices run, even with on_all") {
  const ParallelModel model{[](std::span<const int> rows) { return rows.size(); }, host_devices(3)};
  CHECK(model(on_all(), std::vector{1, 2}).extent(0) == 2);
  CHECK(model(on_all(), std::vector<int>()).extent(0) == 3);
}
