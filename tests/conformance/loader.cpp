// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fanout/data.hpp>

#include "support/message_of.hpp"

using fanout::Loader;
using fanout::LoaderOptions;
using fanout::PaddedLikeTorch;
using fanout::Shuffle;
using fanout_test::message_of;
using fanout_test::says;

namespace {

using Batches = std::vector<std::vector<int>>;

std::vector<int> first_numbers(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

template <class D>
Batches batches_in(const Loader<D>& loader, std::uint64_t epoch = 0) {
  Batches batches;
  for (auto&& batch : loader.epoch(epoch)) batches.emplace_back(batch.begin(), batch.end());
  return batches;
}

std::string why_refused(const LoaderOptions& options) {
  return message_of<fanout::InvalidArgument>([&] { static_cast<void>(Loader{first_numbers(10), options}); });
}

}  // namespace

TEST_CASE("rule 186: by default a batch has one row, and the loop's own thread loads it in the dataset's order") {
  constexpr LoaderOptions options;
  CHECK(options.batch == 1);
  CHECK(!options.shuffle);
  CHECK(options.workers == 0);
  CHECK(!options.drop_last);
  CHECK(batches_in(Loader{first_numbers(3)}) == Batches{{0}, {1}, {2}});
}

TEST_CASE("rule 187: invalid options are refused when the loader is made") {
  CHECK(says(why_refused({.batch = 0}), "LoaderOptions::batch"));
  CHECK(says(why_refused({.workers = -1}), "LoaderOptions::workers"));
  CHECK(says(why_refused({.prefetch = -1}), "LoaderOptions::prefetch"));
  CHECK_NOTHROW(static_cast<void>(Loader{first_numbers(10), {.prefetch = 4}}));  // so that --workers 0 works, too
}

TEST_CASE("rule 188: workers without prefetch are refused, since the loop would get no batch") {
  CHECK(says(why_refused({.workers = 2, .prefetch = 0}), "LoaderOptions::prefetch", "1 or more", "found 0"));
}

TEST_CASE("rule 189: ten rows by three are 3, 3, 3 and 1, or 3, 3 and 3 with drop_last") {
  const Loader whole{first_numbers(10), {.batch = 3}};
  CHECK(batches_in(whole) == Batches{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9}});
  CHECK(whole.batches() == 4);
  const Loader dropped{first_numbers(10), {.batch = 3, .drop_last = true}};
  CHECK(batches_in(dropped) == Batches{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}});
  CHECK(dropped.batches() == 3);
}

TEST_CASE("rule 190: batches come in their order, whichever worker is first") {
  const Loader loader{12,
                      [](std::span<const std::size_t> samples) {
                        std::this_thread::sleep_for(std::chrono::milliseconds(samples[0] % 3 == 0 ? 3 : 0));
                        return std::vector{static_cast<int>(samples[0])};
                      },
                      {.workers = 3, .prefetch = 5}};
  std::vector<int> all;
  for (auto&& batch : loader.epoch(0)) all.push_back(batch[0]);
  CHECK(all == first_numbers(12));
}

TEST_CASE("rule 191: a shuffled order depends on its seed and the epoch alone") {
  const Loader one{first_numbers(50), {.batch = 50, .shuffle = Shuffle{.seed = 3}}};
  const Loader same{first_numbers(50), {.batch = 50, .shuffle = Shuffle{.seed = 3}, .workers = 2}};
  const Loader other{first_numbers(50), {.batch = 50, .shuffle = Shuffle{.seed = 4}}};
  CHECK(batches_in(one, 5) == batches_in(same, 5));
  CHECK(batches_in(one, 5) != batches_in(one, 6));
  CHECK(batches_in(one, 5) != batches_in(other, 5));
}

TEST_CASE("rule 192: random numbers of samples do not depend on the workers") {
  struct Noise {
    std::size_t size() const { return 20; }
    int operator[](std::size_t i) const {
      fanout::RandomStream random(7, 1, i);
      return static_cast<int>(random() % 1'000);
    }
  };
  const Batches alone = batches_in(Loader{Noise(), {.batch = 4}});
  CHECK(alone == batches_in(Loader{Noise(), {.batch = 4, .workers = 3}}));
}

TEST_CASE("rules 193 and 198: an exception comes in its batch's place with the original, and the next batch after it") {
  struct Bad {
    std::size_t size() const { return 3; }
    int operator[](std::size_t i) const {
      if (i == 1) throw std::invalid_argument("badness");
      return static_cast<int>(i);
    }
  };
  const Loader loader{Bad(), {.workers = 2}};
  auto epoch = loader.epoch(0);
  CHECK((*epoch.next())[0] == 0);
  try {
    static_cast<void>(epoch.next());
    CHECK(false);
  } catch (const fanout::LoadError& error) {
    CHECK(says(error.what(), "Caught std::invalid_argument", "Original message: badness"));
    CHECK_THROWS_AS(error.rethrow(), std::invalid_argument);
  }
  CHECK((*epoch.next())[0] == 2);
  CHECK(!epoch.next());
}

TEST_CASE("rule 196: workers share one dataset, so no sample comes twice") {
  CHECK(batches_in(Loader{first_numbers(5), {.batch = 5, .workers = 4}}) == Batches{{0, 1, 2, 3, 4}});
}

TEST_CASE("rule 197: PaddedLikeTorch has the rows of DistributedSampler, and a RowRange pads nothing") {
  const auto of_rank = [](int rank) {
    return batches_in(Loader{first_numbers(10), {.batch = 9, .rows = PaddedLikeTorch{.rank = rank, .ranks = 4}}});
  };
  CHECK(of_rank(1) == Batches{{1, 5, 9}});
  CHECK(of_rank(3) == Batches{{3, 7, 1}});
  CHECK(says(why_refused({.rows = PaddedLikeTorch{.rank = 4, .ranks = 4}}), "Invalid rank 4",
             "rank should be in the interval [0, 3]"));
  CHECK(batches_in(Loader{first_numbers(10), {.batch = 9, .rows = fanout::RowRange{8, 10}}}) == Batches{{8, 9}});
}
