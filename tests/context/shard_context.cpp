// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <fanout/context/shard_context.hpp>

#include "support/message_of.hpp"

namespace {

using fanout::HostDevice;
using fanout::ShardContext;
using fanout::backend::Memory;
using fanout::detail::Scratch;
using fanout_test::message_of;
using fanout_test::says;

static_assert(fanout::Context<ShardContext<HostDevice>>);

struct Fixture {
  fanout::DeviceSet<HostDevice> devices = fanout::host_devices(2);
  fanout::Plan plan{{.rows = {0, 3}, .device = 1}, {.rows = {3, 5}, .device = 0}};
  const fanout::detail::CallSettings call_settings{.seed = 7};
  fanout::detail::CallState frame{plan, call_settings, {.number = 9}};
  Scratch first_scratch, second_scratch;
  ShardContext<HostDevice> first{devices[1], frame, 0, first_scratch};
  ShardContext<HostDevice> second{devices[0], frame, 1, second_scratch};
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a shard's context knows its place in the call") {
  CHECK(first.rank() == 0);
  CHECK(second.rank() == 1);
  CHECK(second.size() == 2);
  CHECK(second.rows() == fanout::RowRange{3, 5});
  CHECK(first.device().id().index == 1);
}

TEST_CASE_FIXTURE(Fixture, "random numbers are keyed by seed, call and the row in the whole batch") {
  fanout::RandomStream expected(7, 9, 4);
  fanout::RandomStream random = second.random(1);
  for (int i = 0; i < 9; ++i) CHECK(random() == expected());
}

TEST_CASE_FIXTURE(Fixture, "a row that the shard does not have has no random numbers") {
  CHECK_NOTHROW((void)first.random(2));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { (void)first.random(3); }), "at ctx.random",
             "a row from 0 to 2, counted from the shard's first one", "found 3", "ctx.rows().local(row)"));
  CHECK_THROWS_AS((void)second.random(second.rows().first), fanout::InvalidArgument);
  CHECK_THROWS_AS((void)second.random(second.rows().local(2)), fanout::InvalidArgument);  // of the shard before
  CHECK(second.random(second.rows().local(4))() == second.random(1)());
}

TEST_CASE("a shard without rows has the first row's random numbers, for the kernels that count from there") {
  const fanout::DeviceSet<HostDevice> devices = fanout::host_devices(1);
  const fanout::Plan plan{{.rows = {0, 3}, .device = 0}, {.rows = {3, 3}, .device = 0}};
  const fanout::detail::CallSettings call_settings{.seed = 7};
  fanout::detail::CallState frame{plan, call_settings, {.number = 9}};
  Scratch scratch;
  const ShardContext<HostDevice> context(devices[0], frame, 1, scratch);
  CHECK(context.random(0)() == fanout::RandomStream(7, 9, 3)());
  CHECK(says(message_of<fanout::InvalidArgument>([&] { (void)context.random(1); }), "row 0 in a shard without rows",
             "found 1"));
}

TEST_CASE_FIXTURE(Fixture, "the n-th outputs of all shards share a buffer, if their rows have as many bytes") {
  const auto a = first.claim_output(8);
  const auto b = second.claim_output(8);
  CHECK(&a.buffer == &b.buffer);
  CHECK(a.buffer.rows() == 5);
  CHECK(a.rows == fanout::RowRange{0, 3});
  CHECK(b.rows == fanout::RowRange{3, 5});
  CHECK(a.first == a.buffer.row(0));
  CHECK(b.first == a.buffer.row(3));

  const auto c = first.claim_output(8);
  CHECK(&c.buffer != &a.buffer);
  const auto d = second.claim_output(12);
  CHECK(&d.buffer != &c.buffer);
  CHECK(d.buffer.rows() == 2);
  CHECK(d.rows == fanout::RowRange{0, 2});
  CHECK(d.first == d.buffer.row(0));

  const auto e = first.claim_output(4);
  const auto f = second.claim_output(4);
  CHECK(&e.buffer == &f.buffer);
}

TEST_CASE("a shard in another memory than the target's fills a buffer of its own") {
  const fanout::DeviceSet<HostDevice> devices = fanout::host_devices(1);
  const fanout::Plan plan{{.rows = {0, 3}, .device = 0}, {.rows = {3, 5}, .device = 0}};
  const fanout::detail::CallSettings call_settings{.target = {.space = {{.kind = "toy", .index = 0}}}};
  fanout::detail::CallState frame(plan, call_settings);
  Scratch scratch;
  ShardContext<HostDevice> context(devices[0], frame, 1, scratch);
  const auto claim = context.claim_output(8);
  CHECK(claim.buffer.rows() == 2);
  CHECK(claim.buffer.memory().space == fanout::host_memory);
  CHECK(claim.rows == fanout::RowRange{0, 2});
}

TEST_CASE_FIXTURE(Fixture, "scratch blocks are separate and writable") {
  auto* const a = static_cast<unsigned char*>(first.claim_scratch(100));
  auto* const b = static_cast<unsigned char*>(first.claim_scratch(100));
  for (int i = 0; i < 100; ++i) a[i] = 1;
  for (int i = 0; i < 100; ++i) b[i] = 2;
  CHECK(a[99] == 1);
  CHECK(a != b);
}
