// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/parallel/manual_seed.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::manual_seed;
using fanout::Options;
using fanout::ParallelModel;

namespace {

/// The first random word of each row.
struct FirstWords {
  auto forward(fanout::Context auto& ctx, std::span<const int> rows) const {
    auto words = fanout::output<std::uint32_t>(ctx);
    for (std::size_t i = 0; i < rows.size(); ++i) words[i] = ctx.random(i)();
    return words;
  }
};

std::vector<std::uint32_t> words_with(const Options& options) {
  ParallelModel model{FirstWords{}, fanout::host_devices(2), options};
  const auto words = model(std::vector<int>(5));
  return {words.begin(), words.end()};
}

struct SeedRestored {
  SeedRestored() = default;
  SeedRestored(const SeedRestored&) = delete;
  SeedRestored& operator=(const SeedRestored&) = delete;
  ~SeedRestored() { manual_seed(0); }
};

}  // namespace

TEST_CASE("manual_seed is the seed of models that set none") {
  const SeedRestored restored;
  CHECK(words_with({}) == words_with({.seed = 0}));
  manual_seed(11);
  CHECK(words_with({}) == words_with({.seed = 11}));
  CHECK(words_with({}) != words_with({.seed = 0}));
  CHECK(words_with({.seed = 12}) != words_with({}));
}

TEST_CASE("models that exist keep their seed when manual_seed is called") {
  const SeedRestored restored;
  manual_seed(1);
  ParallelModel before{FirstWords{}, fanout::host_devices(2)};
  manual_seed(2);
  const auto words = before(std::vector<int>(5));
  CHECK(std::vector<std::uint32_t>(words.begin(), words.end()) == words_with({.seed = 1}));
}
