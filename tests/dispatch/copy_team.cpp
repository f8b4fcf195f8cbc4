// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/dispatch/copy_team.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include <fanout/device/host_device.hpp>

using fanout::host_devices;
using fanout::detail::CopyTeam;

TEST_CASE("a team runs each part once, and returns after the last one has ended") {
  const auto devices = host_devices(3);
  const CopyTeam team(devices);
  CHECK(team.size() == 3);
  for (std::size_t parts = 0; parts <= 3; ++parts) {
    std::vector<std::atomic<int>> done(3);
    team.share(parts, [&](std::size_t i) noexcept { ++done[i]; });
    for (std::size_t i = 0; i < 3; ++i) CHECK(done[i] == (i < parts ? 1 : 0));
  }
}

TEST_CASE("a shared part may be shared again, and several threads may share at once") {
  const auto devices = host_devices(2);
  const CopyTeam team(devices);
  std::atomic<int> done{0};
  const auto share = [&] {
    for (int i = 0; i < 100; ++i) {
      team.share(2, [&](std::size_t) noexcept { team.share(2, [&](std::size_t) noexcept { ++done; }); });
    }
  };
  std::thread other(share);
  share();
  other.join();
  CHECK(done == 800);
}
