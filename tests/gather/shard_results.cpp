// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include <fanout/gather/shard_results.hpp>

using fanout::ShardResults;

TEST_CASE("shard results refer to values in place") {
  const std::pair<int, std::string> values[] = {{1, "one"}, {2, "two"}};
  ShardResults<std::pair<int, std::string>> pairs(2, false);
  for (std::size_t i = 0; i < 2; ++i) pairs.set(i, values[i]);
  const ShardResults<std::string> texts(pairs, false,
                                        [](const auto& pair) -> const std::string& { return pair.second; });
  CHECK(pairs.size() == 2);
  CHECK(texts.size() == 2);
  CHECK(&texts[1] == &values[1].second);
}

TEST_CASE("the only shard's result is moved if it is owned, and otherwise copied") {
  std::vector<int> value{1, 2, 3};
  const int* const data = value.data();
  ShardResults<std::vector<int>> lent(1, false);
  lent.set(0, value);
  CHECK(lent.take_only() == std::vector{1, 2, 3});
  CHECK(value.size() == 3);
  ShardResults<std::vector<int>> owned(1, true);
  owned.set(0, value);
  CHECK(owned.take_only().data() == data);
}

TEST_CASE("there may be more pieces than are kept in place") {
  std::vector<int> values(100);
  ShardResults<int> pieces(100, false);
  for (std::size_t i = 0; i < 100; ++i) pieces.set(i, values[i]);
  CHECK(&pieces[99] == &values[99]);
}
