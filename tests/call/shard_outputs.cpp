// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::apply;
using fanout::Context;
using fanout::Plan;
using fanout::ReplicaError;
using fanout::replicate;
using fanout::scatter;
using fanout::ShardOutputs;

namespace {

const auto two_hosts = fanout::host_devices(2);
const Plan four_rows{{.rows = {0, 2}, .device = 0}, {.rows = {2, 3}, .device = 1}, {.rows = {3, 4}, .device = 0}};
const std::vector<int> numbers{1, 2, 3, 4};

/// Can be neither copied nor moved, is aligned as nothing else, and counts those that live.
struct alignas(256) Stays {
  explicit Stays(std::size_t rank) : number(rank) { ++alive; }
  Stays(const Stays&) = delete;
  Stays& operator=(const Stays&) = delete;
  ~Stays() { --alive; }

  std::size_t number;
  static inline std::atomic<int> alive{0};
};

}  // namespace

TEST_CASE("outputs are in row order and outlive the call and its arguments") {
  const auto outputs = [] {
    const auto replicas = replicate(
        [](Context auto& ctx, std::span<const int> x) { return static_cast<int>(10 * ctx.rank() + x.size()); },
        two_hosts);
    return apply(replicas, scatter(four_rows, numbers));
  };
  auto kept = outputs();
  REQUIRE(kept.size() == 3);
  CHECK(kept.plan() == four_rows);
  CHECK(kept[0] == 2);
  CHECK(kept[2] == 21);
  ShardOutputs<int> moved = std::move(kept);
  const auto all = fanout::gather(std::move(moved));
  CHECK(std::vector<int>(all.begin(), all.end()) == std::vector{2, 11, 21});
}

TEST_CASE("shards may return nothing") {
  std::atomic<int> runs{0};
  const auto replicas = replicate([&runs](std::span<const int>) { ++runs; }, two_hosts);
  auto outputs = apply(replicas, scatter(four_rows, numbers));
  static_assert(std::is_void_v<decltype(outputs[0])>);
  fanout::gather(std::move(outputs));
  CHECK(runs == 3);
}

TEST_CASE("a shard's result is destroyed even if another shard threw") {
  const auto counted = std::make_shared<int>(1);
  const auto replicas = replicate(
      [counted](Context auto& ctx, std::span<const int>) {
        if (ctx.rank() == 0) throw std::runtime_error("in forward");
        return counted;
      },
      two_hosts);
  CHECK_THROWS_AS((void)apply(replicas, scatter(four_rows, numbers)), ReplicaError);
  CHECK(counted.use_count() == 2);  // here, and in the model
}

TEST_CASE("each shard's result is made in its place, aligned as its type is, and destroyed with the outputs") {
  for (const std::size_t size : {1U, 8U, 9U, 30U}) {
    CAPTURE(size);
    {
      const auto replicas = replicate([](Context auto& ctx) { return Stays(ctx.rank()); }, two_hosts);
      const Plan plan(size, [](std::size_t i) { return fanout::Shard{.rows = {i, i + 1}, .device = i % 2}; });
      auto outputs = apply(replicas, scatter(plan));
      REQUIRE(outputs.size() == size);
      CHECK(Stays::alive == static_cast<int>(size));
      for (std::size_t i = 0; i < size; ++i) {
        CHECK(outputs[i].number == i);
        CHECK(reinterpret_cast<std::uintptr_t>(&outputs[i]) % 256 == 0);
      }
    }
    CHECK(Stays::alive == 0);
  }
}
