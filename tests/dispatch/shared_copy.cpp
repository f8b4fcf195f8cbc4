// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/dispatch/shared_copy.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

#include <fanout/device/host_device.hpp>

using fanout::host_devices;
using fanout::detail::copy_shared;
using fanout::detail::CopyTeam;
using fanout::detail::RowPart;
using fanout::detail::RowsCopy;

TEST_CASE("a copy gives the same bytes with any number of threads") {
  std::mt19937 random(1);
  const auto three = host_devices(3);
  const auto one = host_devices(1);
  const CopyTeam teams[] = {CopyTeam(one), CopyTeam(three)};
  for (int i = 0; i < 60; ++i) {
    const std::size_t left = i % 3 == 0 ? 1000000 : 1 + random() % 100;
    const std::size_t right = random() % 100;
    const std::size_t rows = i % 3 == 0 ? 1 + random() % 3 : random() % 60000;
    std::vector<std::byte> a(left * rows);
    std::vector<std::byte> b(right * rows);
    for (std::size_t k = 0; k < a.size(); k += 7) a[k] = static_cast<std::byte>(random());
    for (std::byte& x : b) x = static_cast<std::byte>(random());
    const RowPart parts[] = {{a.data(), left, left}, {b.data(), right, right}};
    std::vector<std::byte> alone(a.size() + b.size() + 1);
    std::vector<std::byte> shared(alone.size());
    copy_shared(RowsCopy{alone.data(), rows, parts, 2, left + right}, nullptr);
    copy_shared(RowsCopy{shared.data(), rows, parts, 2, left + right}, &teams[i % 2]);
    REQUIRE(alone == shared);
    for (std::size_t k = 0; k < 20 && rows != 0; ++k) {
      const std::size_t row = random() % rows;
      REQUIRE(alone[row * (left + right) + left - 1] == a[row * left + left - 1]);
      if (right != 0) REQUIRE(alone[row * (left + right) + left] == b[row * right]);
    }
  }
}
