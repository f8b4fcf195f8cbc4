// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <fanout/data/loader_epoch.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/data/load_error.hpp>
#include <fanout/data/loader.hpp>

#include "support/fork.hpp"
#include "support/message_of.hpp"
#include "support/threads_of_process.hpp"

using fanout::Loader;
using fanout::LoadError;
using fanout::Shuffle;
using fanout_test::count_settled_threads;
using fanout_test::count_threads;
using fanout_test::has_threads;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// Sample i is i, but for some that throw.
struct Fragile {
  std::vector<std::size_t> broken;
  std::size_t size() const { return 10; }
  std::size_t operator[](std::size_t i) const {
    std::this_thread::sleep_for(std::chrono::microseconds(i * 7'919 % 300));
    for (const std::size_t sample : broken) {
      if (sample == i) throw std::out_of_range("sample is broken");
    }
    return i;
  }
};

/// The first sample of each batch.
template <class Range>
std::vector<std::size_t> firsts_of(Range&& range) {
  std::vector<std::size_t> firsts;
  for (auto&& batch : range) firsts.push_back(batch[0]);
  return firsts;
}

}  // namespace

TEST_CASE("an epoch is an input range, whose batches the loop may take") {
  const Loader loader{std::vector<int>{1, 2, 3}, {.batch = 2}};
  static_assert(std::ranges::input_range<decltype(loader.epoch(0))>);
  auto epoch = loader.epoch(0);
  CHECK(epoch.size() == 2);
  auto batch = epoch.begin();
  CHECK(epoch.size() == 1);
  const auto taken = std::move(*batch);
  CHECK(taken[1] == 2);
  ++batch;
  CHECK((*batch)[0] == 3);
  batch++;
  CHECK(batch == epoch.end());
  CHECK_THROWS_AS(static_cast<void>(*batch), fanout::InvalidArgument);
  ++batch;
  CHECK(batch == epoch.end());
}

TEST_CASE("an exception of the dataset comes in its batch's place, and the epoch goes on with the next batch") {
  for (const int workers : {0, 1, 3}) {
    CAPTURE(workers);
    const Loader loader{Fragile{{0, 5, 9}}, {.batch = 2, .workers = workers}};
    auto epoch = loader.epoch(4);
    std::vector<std::size_t> firsts;
    std::vector<std::string> errors;
    for (bool over = false; !over;) {
      try {
        for (auto&& batch : epoch) firsts.push_back(batch[0]);
        over = true;
      } catch (const LoadError& error) {
        errors.emplace_back(error.what());
        CHECK(error.get_if<std::out_of_range>() != nullptr);
        CHECK(error.place().batch == firsts.size() + errors.size() - 1);
      }
    }
    CHECK(firsts == std::vector<std::size_t>{2, 6});
    REQUIRE(errors.size() == 3);
    CHECK(says(errors[1], "std::out_of_range", "epoch 4, batch 2, rows [4, 6) of the order, sample 5",
               "Original message: sample is broken"));
    CHECK(loader.position().epoch == 5);
  }
}

TEST_CASE("next() gives the batches one by one, and goes on after an exception") {
  const Loader loader{Fragile{{3}}, {.batch = 4, .workers = 2}};
  auto epoch = loader.epoch(0);
  CHECK_THROWS_AS(static_cast<void>(epoch.next()), LoadError);
  CHECK(loader.position().row == 4);
  CHECK((*epoch.next())[0] == 4);
  CHECK(epoch.size() == 1);
  CHECK((*epoch.next())[1] == 9);
  CHECK(!epoch.next());
  CHECK(!epoch.next());
}

TEST_CASE("exceptions of collating come with the batch, without a sample") {
  const Loader own{Fragile{}, {.batch = 5}, [](std::vector<std::size_t> samples) -> int {
                     throw std::length_error(std::to_string(samples.size()) + " samples");
                   }};
  CHECK(says(message_of<LoadError>([&] { static_cast<void>(own.epoch(0).next()); }),
             "std::length_error in a Loader, epoch 0, batch 0, rows [0, 5) of the order. Original message: 5 samples"));
  const Loader ragged{std::vector<std::vector<int>>{{1}, {1, 2}}, {.batch = 2}};
  CHECK(says(message_of<LoadError>([&] { static_cast<void>(ragged.epoch(0).next()); }), "ShapeMismatch",
             "rows [0, 2) of the order. Original message: the samples of a batch have different extents"));
}

TEST_CASE("no batch is lost if its move throws, and the position stands before it") {
  struct Copied {
    std::size_t first;
    int* copies_left;
    Copied(std::size_t i, int* countdown) : first(i), copies_left(countdown) {}
    Copied(const Copied& other) : first(other.first), copies_left(other.copies_left) {
      if ((*copies_left)-- == 0) throw std::bad_alloc();
    }
    Copied& operator=(const Copied&) = delete;
    ~Copied() = default;
  };
  for (const int workers : {0, 1}) {
    for (int failing = 0; failing < 4; ++failing) {
      CAPTURE(workers);
      CAPTURE(failing);
      int copies_left = failing;
      const Loader loader{
          8,
          [&copies_left](std::span<const std::size_t> samples) { return Copied(samples[0], &copies_left); },
          {.batch = 2, .workers = workers, .prefetch = 1}};
      auto epoch = loader.epoch(0);
      std::vector<std::size_t> firsts;
      int errors = 0;
      for (bool over = false; !over;) {
        try {
          for (auto&& batch : epoch) firsts.push_back(batch.first);
          over = true;
        } catch (const std::bad_alloc&) {
          ++errors;
          CHECK(loader.position().row == 2 * firsts.size());
          CHECK(epoch.size() == 4 - firsts.size());
        }
      }
      CHECK(firsts == std::vector<std::size_t>{0, 2, 4, 6});
      CHECK(errors == 1);
    }
  }
}

TEST_CASE("the position is not behind a batch that the loop waits for") {
  struct Watched {
    const std::function<void()>* watch;
    std::size_t size() const { return 4; }
    std::size_t operator[](std::size_t i) const {
      (*watch)();
      return i;
    }
  };
  std::function<void()> watch = [] {};
  const Loader loader{Watched{&watch}, {.batch = 2}};
  std::vector<std::uint64_t> rows;
  watch = [&] { rows.push_back(loader.position().row); };
  for (auto&& batch : loader.epoch(0)) rows.push_back(10 + loader.position().row + batch[0]);
  CHECK(rows == std::vector<std::uint64_t>{0, 0, 12, 2, 2, 16});
}

TEST_CASE("a loop that was left goes on with the next batch, and one that ended begins again") {
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    const Loader loader{Fragile{}, {.batch = 2, .workers = workers}};
    auto epoch = loader.epoch(0);
    for (auto&& batch : epoch) {
      if (batch[0] == 2) break;
    }
    CHECK(firsts_of(epoch) == std::vector<std::size_t>{4, 6, 8});
    CHECK(loader.position().epoch == 1);
    CHECK(firsts_of(epoch) == std::vector<std::size_t>{0, 2, 4, 6, 8});
    CHECK(firsts_of(epoch) == std::vector<std::size_t>{0, 2, 4, 6, 8});
  }
}

TEST_CASE("no thread is left: after a loop that was left, an exception, a second loop, or without a loop") {
  const std::size_t before = count_settled_threads();
  const Loader loader{Fragile{{7}}, {.batch = 1, .workers = 3, .prefetch = 4}};
  {
    auto unused = loader.epoch(0);
    CHECK(count_threads() == before);
  }
  for (auto&& batch : loader.epoch(0)) {
    CHECK(count_threads() > before);
    if (batch[0] == 1) break;
  }
  CHECK(has_threads(before));
  CHECK_THROWS_AS(firsts_of(loader.epoch(0)), LoadError);
  CHECK(has_threads(before));
  {
    auto epoch = loader.epoch(0);
    CHECK(epoch.next().has_value());
    epoch = loader.epoch(1);  // destroys the first one
    CHECK(has_threads(before));
    CHECK(epoch.next().has_value());
    auto moved = std::move(epoch);
    CHECK((*moved.next())[0] == 1);
  }
  CHECK(has_threads(before));
  const Loader whole{Fragile{}, {.batch = 1, .workers = 2}};
  {
    auto epoch = whole.epoch(0);
    CHECK(firsts_of(epoch) == firsts_of(epoch));
  }
  CHECK(has_threads(before));
}

TEST_CASE("a loop and its prefetch bound the batches that there are at a time") {
  struct Live {
    std::shared_ptr<std::atomic<int>> count;
    explicit Live(std::shared_ptr<std::atomic<int>> with) : count(std::move(with)) { ++*count; }
    Live(Live&& other) noexcept : count(std::move(other.count)) {}
    Live& operator=(Live&&) = delete;
    ~Live() {
      if (count != nullptr) --*count;
    }
  };
  for (const int prefetch : {1, 3}) {
    CAPTURE(prefetch);
    const auto live = std::make_shared<std::atomic<int>>(0);
    const auto most = std::make_shared<std::atomic<int>>(0);
    const Loader loader{200,
                        [live, most](std::span<const std::size_t>) {
                          Live batch(live);
                          int seen = most->load();
                          while (seen < live->load() && !most->compare_exchange_weak(seen, live->load())) {
                          }
                          return batch;
                        },
                        {.batch = 1, .workers = 4, .prefetch = prefetch}};
    int loops = 0;
    for (auto&& batch : loader.epoch(0)) {
      CHECK(batch.count == live);
      if (++loops % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    CHECK(loops == 200);
    CHECK(most->load() <= prefetch + 1);
    CHECK(live->load() == 0);
  }
}

TEST_CASE("epochs of one loader may run on several threads at once") {
  const Loader loader{Fragile{}, {.batch = 3, .shuffle = Shuffle{.seed = 4}, .workers = 2}};
  const auto expected = firsts_of(loader.epoch(0));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 5; ++turn) wrong += firsts_of(loader.epoch(0)) == expected ? 0 : 1;
      wrong += loader.position().rows == 10 ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("the child of a fork cannot go on with its parent's epoch, but with one of its own" *
          doctest::skip(!fanout_test::can_fork || !fanout_test::can_fork_while_allocating)) {
  const Loader loader{Fragile{}, {.batch = 1, .workers = 2}};
  auto epoch = std::make_unique<decltype(loader.epoch(0))>(loader.epoch(0));
  CHECK(epoch->next().has_value());
  CHECK(fanout_test::in_child([&] {
          try {
            static_cast<void>(epoch->next());
            return 1;
          } catch (const fanout::Error& error) {
            if (!says(error.what(), "forked in the middle of an epoch", "in the child")) return 2;
          }
          epoch.reset();  // joins no thread
          return firsts_of(loader.epoch(0)).size() == 10 ? 0 : 3;
        }) == 0);
  CHECK(epoch->size() == 9);
  CHECK((*epoch->next())[0] == 1);
}

namespace {

/// A batch that throws when it is moved, once that is asked for.
struct HeavyBatch {
  static inline bool armed = false;
  std::size_t first;

  explicit HeavyBatch(std::size_t of) : first(of) {}
  HeavyBatch(const HeavyBatch&) = default;
  HeavyBatch(HeavyBatch&& other) : first(other.first) {
    if (armed) throw std::runtime_error("moved");
  }
  HeavyBatch& operator=(const HeavyBatch&) = default;
  HeavyBatch& operator=(HeavyBatch&&) = default;
  ~HeavyBatch() = default;
};

}  // namespace

TEST_CASE("moving an epoch throws what moving its batch throws, and the epoch goes on") {
  for (const int workers : {0, 2}) {
    const auto load = [](std::span<const std::size_t> samples) { return HeavyBatch(samples[0]); };
    const Loader loader{10, load, {.batch = 2, .workers = workers}};
    auto epoch = loader.epoch(0);
    auto at = epoch.begin();
    auto other = loader.epoch(1);
    static_cast<void>(other.begin());
    HeavyBatch::armed = true;
    CHECK(message_of<std::runtime_error>([&] { auto moved = std::move(epoch); }) == "moved");
    CHECK(message_of<std::runtime_error>([&] { other = std::move(epoch); }) == "moved");
    HeavyBatch::armed = false;
    CHECK((*at).first == 0);
    CHECK(epoch.size() == 4);
    other = std::move(epoch);
    auto moved = std::move(other);
    CHECK(moved.size() == 4);
    CHECK(moved.next()->first == 2);
  }
  using Light = decltype(Loader{std::vector<int>{1}, {.batch = 1}}.epoch(0));
  CHECK(std::is_nothrow_move_constructible_v<Light>);
  CHECK(std::is_nothrow_move_assignable_v<Light>);
}

TEST_CASE("batches are loaded under the floating-point modes of the thread that made the epoch") {
  for (const int workers : {0, 2}) {
    const auto load = [](std::span<const std::size_t>) {
      const int mode = std::fegetround();
      std::fesetround(FE_TOWARDZERO);  // what a load leaves behind is for no other one
      return mode;
    };
    const Loader loader{6, load, {.batch = 1, .workers = workers}};
    std::fesetround(FE_UPWARD);
    auto epoch = loader.epoch(0);
    std::fesetround(FE_DOWNWARD);
    std::size_t batches = 0;
    while (const auto mode = epoch.next()) {
      CHECK(*mode == FE_UPWARD);
      ++batches;
    }
    CHECK(batches == 6);
    CHECK(std::fegetround() == FE_DOWNWARD);
    std::fesetround(FE_TONEAREST);
  }
}
