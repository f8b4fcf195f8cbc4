// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/dispatch/shard_runner.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

using fanout::detail::Atomic;
using fanout::detail::DoneFlags;
using fanout::detail::ShardRunner;

namespace {

struct FlaggedCell {
  int other = 0;
  Atomic<bool> done{false};
  std::array<int, 5> more{};
};

/// A body with all that a body may have.
struct FullBody {
  std::vector<std::size_t>& ran;
  std::array<FlaggedCell, 3>& cells;
  int& told_late;

  void operator()(std::size_t i) const noexcept { ran.push_back(i); }
  DoneFlags done_flags() const noexcept { return {cells[0].done, sizeof(FlaggedCell)}; }
  void tell_late() const noexcept { ++told_late; }
};

}  // namespace

TEST_CASE("done flags are found inside of larger objects") {
  CHECK_FALSE(DoneFlags());
  std::array<FlaggedCell, 3> cells;
  const DoneFlags flags(cells[0].done, sizeof(FlaggedCell));
  CHECK(flags);
  for (std::size_t i = 0; i < 3; ++i) CHECK(&flags[i] == &cells[i].done);
}

TEST_CASE("a runner runs the shards of its body and tells it of the call") {
  std::vector<std::size_t> ran;
  std::array<FlaggedCell, 3> cells;
  int told_late = 0;
  const FullBody body{ran, cells, told_late};
  const ShardRunner runner(body);
  runner.run(runner.body, 2);
  CHECK(runner.run(runner.body, 1) == &cells[1].done);
  CHECK(ran == std::vector<std::size_t>{2, 1});
  runner.tell_late();
  CHECK(told_late == 1);
  CHECK(&runner.done_flags[2] == &cells[2].done);
}

TEST_CASE("a body need only run shards") {
  std::size_t last = 0;
  const auto body = [&last](std::size_t i) noexcept { last = i; };
  const ShardRunner runner(body);
  CHECK(runner.run(runner.body, 4) == nullptr);
  CHECK(last == 4);
  CHECK_FALSE(runner.done_flags);
  runner.tell_late();  // nobody is told
}
