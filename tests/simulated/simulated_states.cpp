// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/simulated/simulated_states.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <thread>
#include <vector>

using fanout::detail::simulated_states;
using fanout::detail::SimulatedState;
using fanout::detail::Simulation;

static_assert(sizeof(SimulatedState) + sizeof(Simulation) < 1024, "as simulated_devices() says");

TEST_CASE("each simulated device of the process has an index of its own, by which it is found") {
  static Simulation simulation;  // as long as the states, which are never destroyed
  std::vector<SimulatedState*> states[4];
  std::vector<std::thread> threads;
  for (auto& own : states) {
    threads.emplace_back([&own] {
      for (std::size_t i = 0; i < 300; ++i) own.push_back(&simulated_states.add(simulation, i, {}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& own : states) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      CHECK(&simulated_states[own[i]->id().index] == own[i]);
      if (i != 0) CHECK(own[i]->id().index > own[i - 1]->id().index);
    }
  }
}
