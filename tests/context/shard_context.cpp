// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::host_devices;
using fanout::InvalidArgument;
using fanout::ParallelModel;
using fanout::Plan;
using fanout::RandomStream;
using fanout::RowRange;
using fanout_test::message_of;
using fanout_test::says;

static_assert(fanout::Context<fanout::ShardContext<fanout::HostDevice>>);

namespace {

/// Shards of these rows, one after the other on one device.
template <class F>
void run_shards_of(const Plan& plan, const F& forward) {
  const ParallelModel model{[&forward](fanout::Context auto& ctx, std::span<const int>) { forward(ctx); },
                            host_devices(1),
                            {.split =
                                 [&plan](std::size_t rows, std::size_t) {
                                   return rows == 0 ? Plan{{.rows = {0, 0}, .device = 0}} : plan;
                                 },
                             .seed = 7}};
  model(std::vector<int>(plan.rows()));
}

const Plan three_and_two{{.rows = {0, 3}, .device = 0}, {.rows = {3, 5}, .device = 0}};

}  // namespace

TEST_CASE("a shard's context knows its place in the call") {
  run_shards_of(three_and_two, [](auto& ctx) {
    CHECK(ctx.size() == 2);
    CHECK(ctx.rows() == (ctx.rank() == 0 ? RowRange{0, 3} : RowRange{3, 5}));
    CHECK(ctx.device().id().index == 0);
  });
}

TEST_CASE("random numbers are keyed by seed, call and the row in the whole batch, and only of the shard's rows") {
  run_shards_of(three_and_two, [](auto& ctx) {
    if (ctx.rank() == 0) {
      CHECK_NOTHROW(static_cast<void>(ctx.random(2)));
      CHECK(says(message_of<InvalidArgument>([&] { static_cast<void>(ctx.random(3)); }), "at ctx.random",
                 "a row from 0 to 2, counted from the shard's first one", "found 3", "ctx.rows().local(row)"));
      return;
    }
    RandomStream expected(7, 0, 4);
    RandomStream random = ctx.random(1);
    for (int i = 0; i < 9; ++i) CHECK(random() == expected());
    CHECK_THROWS_AS(static_cast<void>(ctx.random(ctx.rows().first)), InvalidArgument);
    CHECK_THROWS_AS(static_cast<void>(ctx.random(ctx.rows().local(2))), InvalidArgument);  // of the shard before
    CHECK(ctx.random(ctx.rows().local(4))() == ctx.random(1)());
  });
}

TEST_CASE("a shard without rows has the first row's random numbers, for the kernels that count from there") {
  run_shards_of({{.rows = {0, 3}, .device = 0}, {.rows = {3, 3}, .device = 0}}, [](auto& ctx) {
    if (ctx.rank() == 0) return;
    CHECK(ctx.random(0)() == RandomStream(7, 0, 3)());
    CHECK(says(message_of<InvalidArgument>([&] { static_cast<void>(ctx.random(1)); }), "row 0 in a shard without rows",
               "found 1"));
  });
}

TEST_CASE("the n-th outputs of all shards share a buffer, if their rows have as many bytes") {
  struct Claim {
    const void* buffer;
    std::size_t buffer_rows;
    RowRange rows;
    bool in_place;  // where these rows are in the buffer
  };
  std::vector<Claim> of_first;
  std::vector<Claim> of_second;
  run_shards_of(three_and_two, [&](auto& ctx) {
    for (const std::size_t row_bytes : {8U, ctx.rank() == 0 ? 8U : 12U, 4U}) {
      const auto claim = ctx.claim_output(row_bytes);
      (ctx.rank() == 0 ? of_first : of_second)
          .push_back(
              {&claim.buffer, claim.buffer.rows(), claim.rows, claim.first == claim.buffer.row(claim.rows.first)});
    }
  });
  REQUIRE(of_second.size() == 3);
  for (const std::size_t i : {0U, 2U}) {
    CHECK(of_first[i].buffer == of_second[i].buffer);
    CHECK(of_first[i].buffer_rows == 5);
    CHECK(of_first[i].rows == RowRange{0, 3});
    CHECK(of_second[i].rows == RowRange{3, 5});
  }
  CHECK(of_first[1].buffer != of_first[0].buffer);
  CHECK(of_second[1].buffer != of_first[1].buffer);
  const bool is_first = of_first[1].buffer_rows == 5;  // it came first, and the other one has a buffer of its own
  CHECK(of_second[1].buffer_rows == (is_first ? 2 : 5));
  CHECK(of_first[1].rows == RowRange{0, 3});
  CHECK(of_second[1].rows == (is_first ? RowRange{0, 2} : RowRange{3, 5}));
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(of_first[i].in_place);
    CHECK(of_second[i].in_place);
  }
}
