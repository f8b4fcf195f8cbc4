// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/dispatch/crew.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include <fanout/device/host_device.hpp>

using fanout::host_devices;
using fanout::detail::Crew;

TEST_CASE("a crew does each part once, and has done all of them when it returns") {
  const auto devices = host_devices(3);
  const Crew crew(devices);
  CHECK(crew.size() == 3);
  for (std::size_t parts = 0; parts <= 3; ++parts) {
    std::vector<std::atomic<int>> done(3);
    crew.share(parts, [&](std::size_t i) noexcept { ++done[i]; });
    for (std::size_t i = 0; i < 3; ++i) CHECK(done[i] == (i < parts ? 1 : 0));
  }
}

TEST_CASE("parts may be shared once more, and by several threads at once") {
  const auto devices = host_devices(2);
  const Crew crew(devices);
  std::atomic<int> done{0};
  const auto share = [&] {
    for (int i = 0; i < 100; ++i) {
      crew.share(2, [&](std::size_t) noexcept { crew.share(2, [&](std::size_t) noexcept { ++done; }); });
    }
  };
  std::thread other(share);
  share();
  other.join();
  CHECK(done == 800);
}
