// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::broadcast;
using fanout::Tensor;
using fanout::View;

TEST_CASE("broadcast borrows an lvalue, const or not, and owns an rvalue") {
  std::vector<int> table{1, 2, 3};
  const std::vector<int> fixed{4};
  static_assert(std::is_same_v<decltype(broadcast(table).value), const std::vector<int>&>);
  static_assert(std::is_same_v<decltype(broadcast(fixed).value), const std::vector<int>&>);
  static_assert(std::is_same_v<decltype(broadcast(std::move(table)).value), std::vector<int>>);
  CHECK(&broadcast(table).value == &table);
  const auto owned = broadcast(std::make_unique<int>(7));
  CHECK(*owned.value == 7);
}

TEST_CASE("every replica sees the whole broadcast argument, which is neither split nor counted as rows") {
  const Tensor<int, 1> x(6);
  const std::vector<int> table{1, 2, 3, 4};
  fanout::ParallelModel model{
      [](View<const int, 1> rows, const std::vector<int>& whole, const std::string& text) {
        return std::tuple{rows.extent(0), whole.size(), reinterpret_cast<std::uintptr_t>(whole.data()), text.size()};
      },
      fanout::host_devices(3)};
  const auto [rows, sizes, addresses, letters] = model(x, broadcast(table), broadcast(std::string("abc")));
  REQUIRE(sizes.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(rows[i] == 2);
    CHECK(sizes[i] == 4);
    CHECK(addresses[i] == reinterpret_cast<std::uintptr_t>(table.data()));
    CHECK(letters[i] == 3);
  }
}

TEST_CASE("with only broadcast arguments there is nothing to split") {
  const Tensor<int, 1> x(6);
  fanout::ParallelModel model{[](const Tensor<int, 1>& whole) { return whole.extent(0); }, fanout::host_devices(3)};
  const auto result = model(broadcast(x));
  REQUIRE(result.size() == 1);
  CHECK(result[0] == 6);
}
