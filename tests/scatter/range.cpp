// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/scatter/range.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Range;
using fanout::RowRange;
using fanout_test::message_of;
using fanout_test::says;

TEST_CASE("each shard is passed its rows of a range without data") {
  for (int devices = 1; devices <= 4; ++devices) {
    const ParallelModel squares{[](fanout::Context auto& ctx, RowRange rows) {
                                  CHECK(rows == ctx.rows());
                                  auto output = fanout::output<std::size_t>(ctx);
                                  for (const auto [local, global] : rows.enumerate()) output[local] = global * global;
                                  return output;
                                },
                                host_devices(devices)};
    const auto all = squares(Range{7});
    CHECK(std::vector(all.begin(), all.end()) == std::vector<std::size_t>{0, 1, 4, 9, 16, 25, 36});
    CHECK(squares(Range{0}).empty());
  }
}

TEST_CASE("rows of a range draw the same random numbers on any number of devices") {
  std::vector<std::uint32_t> expected;
  for (int devices = 1; devices <= 4; ++devices) {
    CAPTURE(devices);
    const ParallelModel draws{[](fanout::Context auto& ctx, RowRange rows) {
                                auto output = fanout::output<std::uint32_t>(ctx);
                                for (const auto [local, global] : rows.enumerate()) {
                                  output[local] = ctx.random(local)();
                                }
                                for (const auto row : rows) {
                                  CHECK(output[rows.local(row)] == ctx.random(rows.local(row))());
                                }
                                return output;
                              },
                              host_devices(devices)};
    const auto drawn = draws(Range{7});
    if (devices == 1) expected.assign(drawn.begin(), drawn.end());
    CHECK(std::vector(drawn.begin(), drawn.end()) == expected);

    // Numbers in the whole batch, where those in the shard are due.
    const ParallelModel mistaken{[](fanout::Context auto& ctx, RowRange rows) {
                                   auto output = fanout::output<std::uint32_t>(ctx);
                                   for (const auto row : rows) output[rows.local(row)] = ctx.random(row)();
                                   return output;
                                 },
                                 host_devices(devices), fanout::Options{.rethrow_single = true}};
    if (devices == 1) {
      const auto same = mistaken(Range{7});
      CHECK(std::vector(same.begin(), same.end()) == expected);
    } else {
      CHECK_THROWS_AS((void)mistaken(Range{7}), fanout::Error);
    }
  }
}

TEST_CASE("a range has rows like any array, whatever the batch axis") {
  const int rows = 3;
  const ParallelModel model{[](RowRange range, fanout::View<const int, 2> x) {
                              CHECK(x.extent(1) == range.size());
                              return range.size();
                            },
                            host_devices(3), fanout::Options{.axis = 1}};
  CHECK(model(Range{rows}, fanout::Tensor<int, 2>(2, 3)).extent(0) == 3);
  CHECK_THROWS_AS(model(Range{rows}, fanout::Tensor<int, 2>(2, 4)), fanout::ShapeMismatch);
}

TEST_CASE("a negative range is refused") {
  CHECK(says(message_of<fanout::ShapeMismatch>([] { (void)Range(-1); }), "not negative", "found -1"));
  static_assert(Range(5).size() == 5);
}
