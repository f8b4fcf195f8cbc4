// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/data/epoch_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fanout/data/loader_options.hpp>
#include <fanout/data/padded_like_torch.hpp>
#include <fanout/data/shuffle.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/row_range.hpp>

using fanout::LoaderOptions;
using fanout::PaddedLikeTorch;
using fanout::RowRange;
using fanout::Shuffle;
using fanout::detail::EpochOrder;

namespace {

using Numbers = std::vector<std::size_t>;

Numbers samples_in(const EpochOrder& order) {
  Numbers samples;
  for (std::size_t i = 0; i < order.batches(); ++i) {
    for (const std::size_t row : order.rows(i)) samples.push_back(order.sample(row));
  }
  return samples;
}

std::vector<std::size_t> sizes_in(const EpochOrder& order) {
  Numbers sizes;
  for (std::size_t i = 0; i < order.batches(); ++i) sizes.push_back(order.rows(i).size());
  return sizes;
}

Numbers counted(std::size_t first, std::size_t last) {
  Numbers numbers;
  for (std::size_t i = first; i < last; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

TEST_CASE("batches follow each other, and the last one has what is left") {
  const EpochOrder whole({.batch = 3}, 10, 0, 0);
  CHECK(sizes_in(whole) == Numbers{3, 3, 3, 1});
  CHECK(samples_in(whole) == counted(0, 10));
  const EpochOrder dropped({.batch = 3, .drop_last = true}, 10, 0, 0);
  CHECK(sizes_in(dropped) == Numbers{3, 3, 3});
  CHECK(sizes_in(EpochOrder({.batch = 5, .drop_last = true}, 10, 0, 0)) == Numbers{5, 5});
  CHECK(sizes_in(EpochOrder({.batch = 11}, 10, 0, 0)) == Numbers{10});
  CHECK(sizes_in(EpochOrder({.batch = 11, .drop_last = true}, 10, 0, 0)).empty());
  CHECK(sizes_in(EpochOrder({.batch = 3}, 0, 0, 0)).empty());
}

TEST_CASE("an epoch that begins at a row has the rest of the batches, under their own numbers") {
  const LoaderOptions options{.batch = 3, .shuffle = Shuffle{.seed = 5}};
  const Numbers whole = samples_in(EpochOrder(options, 10, 2, 0));
  for (std::size_t row = 0; row <= 10; ++row) {
    CAPTURE(row);
    const EpochOrder rest(options, 10, 2, row);
    CHECK(samples_in(rest) == Numbers(whole.begin() + static_cast<std::ptrdiff_t>(row), whole.end()));
    CHECK(rest.epoch() == 2);
    CHECK(rest.number(1) == row / 3 + 1);
  }
}

TEST_CASE("a shuffled epoch has the order of Shuffle, another one in each epoch") {
  const LoaderOptions options{.batch = 4, .shuffle = Shuffle{.seed = 1}};
  CHECK(samples_in(EpochOrder(options, 10, 0, 0)) == Numbers{7, 8, 0, 3, 1, 2, 9, 6, 4, 5});
  CHECK(samples_in(EpochOrder(options, 10, 1, 0)) == Numbers{1, 5, 2, 3, 9, 0, 7, 4, 8, 6});
}

TEST_CASE("the row ranges of ranks are parts of one order, in which nothing is padded or dropped") {
  for (const std::size_t ranks : {1U, 2U, 3U, 7U, 30U}) {
    for (const std::size_t samples : {0U, 1U, 23U, 24U}) {
      CAPTURE(ranks);
      CAPTURE(samples);
      Numbers all;
      const fanout::Plan plan = fanout::EvenSplit{}(samples, ranks);
      for (const fanout::Shard& shard : plan) {
        const EpochOrder mine({.batch = 4, .shuffle = Shuffle{.seed = 1}, .rows = shard.rows}, samples, 3, 0);
        for (const std::size_t sample : samples_in(mine)) all.push_back(sample);
      }
      CHECK(all == samples_in(EpochOrder({.batch = 5, .shuffle = Shuffle{.seed = 1}}, samples, 3, 0)));
    }
  }
}

// What list(DistributedSampler(range(samples), ranks, rank, shuffle=False)) is in Python.
TEST_CASE("padded rows are those of PyTorch's DistributedSampler") {
  const auto of_rank = [](std::size_t samples, int rank, int ranks) {
    return samples_in(EpochOrder({.batch = 2, .rows = PaddedLikeTorch{.rank = rank, .ranks = ranks}}, samples, 0, 0));
  };
  CHECK(of_rank(10, 0, 4) == Numbers{0, 4, 8});
  CHECK(of_rank(10, 1, 4) == Numbers{1, 5, 9});
  CHECK(of_rank(10, 2, 4) == Numbers{2, 6, 0});
  CHECK(of_rank(10, 3, 4) == Numbers{3, 7, 1});
  CHECK(of_rank(8, 3, 4) == Numbers{3, 7});
  CHECK(of_rank(2, 4, 5) == Numbers{0});  // repeated more than once
  CHECK(of_rank(0, 1, 2).empty());
  const EpochOrder shuffled({.shuffle = Shuffle{.seed = 1}, .rows = PaddedLikeTorch{.rank = 3, .ranks = 4}}, 10, 0, 0);
  CHECK(samples_in(shuffled) == Numbers{3, 6, 8});  // of 7 8 0 3 1 2 9 6 4 5 7 8
}
