// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <optional>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout_test::message_of;

TEST_CASE("results that do not match are refused with place, both shards and their values") {
  const auto said = [](const auto& forward) {
    const fanout::ParallelModel model{forward, fanout::host_devices(2)};
    return message_of<fanout::Error>([&] { model(fanout_test::count_to(3)); });
  };
  CHECK(
      said([](fanout::Context auto& ctx, fanout::View<const int, 1>) {
        return fanout::dict("image"_k = fanout::Tensor<int, 2>(1, 2 + ctx.rank()));
      }) ==
      "replicas returned arrays of different extents at output.image: expected trailing extents of [1, 2] as from "
      "shard 0 on "
      "host:0, rows [0, 2), found [1, 3] from shard 1 on host:1, rows [2, 3); arrays are concatenated by rows, so all "
      "other axes must agree");
  CHECK(said([](fanout::Context auto& ctx, fanout::View<const int, 1>) {
          return fanout::dict("image"_k = ctx.rank() == 0 ? std::optional(5) : std::nullopt);
        }) ==
        "some replicas returned a value and some did not at output.image: expected a value as from shard 0 on host:0, "
        "rows "
        "[0, 2), found none from shard 1 on host:1, rows [2, 3); return the same structure from every replica");
}
