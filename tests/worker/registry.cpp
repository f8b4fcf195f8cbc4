// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/worker/cores.hpp>
#include <fanout/worker/registry.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "support/asleep.hpp"

using fanout::backend::registry;

TEST_CASE("there is one registry, and it knows the process's cores") {
  CHECK(&registry() == &registry());
  CHECK(registry().cores() == fanout::detail::process_cores());
}

TEST_CASE("equal arguments give one worker, and another device, other cores or another binding another") {
  const std::vector<int> both = {0, 1};
  const std::vector<int> one = {0};
  fanout::backend::Worker& worker = registry().worker({.kind = "regist", .index = 0}, both, true);
  CHECK(&registry().worker({.kind = "regist", .index = 0}, both, true) == &worker);
  CHECK(worker.id() == fanout::DeviceId{.kind = "regist", .index = 0});
  CHECK(worker.cores() == both);
  CHECK(worker.bound());
  fanout::backend::Worker& unbound = registry().worker({.kind = "regist", .index = 0}, both, false);
  CHECK_FALSE(unbound.bound());
  const std::array<fanout::backend::Worker*, 5> all = {&worker, &unbound,
                                                       &registry().worker({.kind = "regist", .index = 1}, both, true),
                                                       &registry().worker({.kind = "regist", .index = 0}, one, true),
                                                       &registry().worker({.kind = "regis", .index = 0}, both, true)};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK(all[i] != all[j]);
  }
  CHECK(&registry().worker({.kind = "regist", .index = 0}, both, true) == &worker);
}

TEST_CASE("many threads that ask for the same new workers at once get the same ones") {
  constexpr std::size_t threads = 6;
  constexpr std::size_t workers = 40;
  std::array<std::array<fanout::backend::Worker*, workers>, threads> had{};
  std::atomic<bool> start{false};
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      fanout_test::until(start);
      for (std::size_t i = 0; i < workers; ++i) {
        had[t][i] = &registry().worker({.kind = "many", .index = static_cast<int>(i)}, {0}, false);
      }
    });
  }
  start = true;
  for (std::thread& thread : all) thread.join();
  for (std::size_t t = 1; t < threads; ++t) CHECK(had[t] == had[0]);
  for (std::size_t i = 1; i < workers; ++i) CHECK(had[0][i] != had[0][i - 1]);
}
