// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/worker/system_threads.hpp>
#include <support/affinity.hpp>
#include <support/skip.hpp>

namespace {

int core_now() { return fanout::detail::SystemThreads::current_core(); }

using fanout_test::narrow_to;
using fanout_test::own_cores;

}  // namespace

TEST_CASE("a caller on the core of another device moves to the main device's core, and may use all cores as before") {
  const std::vector<int> all = own_cores();
  const auto devices = fanout::host_devices(2);
  const std::vector<int> first = devices[0].worker().cores();
  const std::vector<int> second = devices[1].worker().cores();
  if (all.size() < 2 || first.size() != 1 || second.size() != 1) {
    fanout_test::skip("this needs two devices with a core each");
    return;
  }
  const fanout::ParallelModel model{[](fanout::View<const int, 1>) {
                                      // As long as both run: so the caller waits for the other device.
                                      std::this_thread::sleep_for(std::chrono::microseconds(200));
                                    },
                                    devices};
  const fanout::Tensor<int, 1> x(2);
  std::thread([&] {
    bool has_moved = false;
    for (int i = 0; i < 200 && !has_moved; ++i) {
      narrow_to(second);
      narrow_to(all);
      if (core_now() != second[0]) continue;
      model(x);
      has_moved = core_now() == first[0];
      CHECK(own_cores() == all);
    }
    CHECK(has_moved);
    // A thread that may use no other core stays.
    narrow_to(second);
    for (int i = 0; i < 5; ++i) model(x);
    CHECK(own_cores() == second);
  }).join();
}
