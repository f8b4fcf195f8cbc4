// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <fanout/data/loader.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/data/loader_options.hpp>
#include <fanout/memory/host_allocator.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/tree/plain_struct.hpp>

#include "memory/remote_memory.hpp"
#include "support/message_of.hpp"

using fanout::Loader;
using fanout::LoaderOptions;
using fanout::LoaderPosition;
using fanout::PaddedLikeTorch;
using fanout::RowRange;
using fanout::Shuffle;
using fanout::Tensor;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// Sample i is an array of the number i, and i itself.
class Numbered {
 public:
  explicit Numbered(std::size_t size) : size_(size) {}
  std::size_t size() const { return size_; }
  std::pair<Tensor<float, 1>, std::size_t> operator[](std::size_t i) const {
    return {Tensor<float, 1>::full({3}, static_cast<float>(i)), i};
  }

 private:
  std::size_t size_;
};

using Labels = std::vector<std::size_t>;

Labels labels_in(const Tensor<std::size_t, 1>& batch) { return {batch.begin(), batch.end()}; }

/// The labels of each batch that comes.
template <class Epoch>
std::vector<Labels> batches_of(Epoch&& epoch) {
  std::vector<Labels> batches;
  for (auto&& [x, y] : epoch) batches.push_back(labels_in(y));
  return batches;
}

Labels joined(const std::vector<Labels>& batches) {
  Labels all;
  for (const Labels& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

/// Counts its copies.
struct CopyCounted {
  int value;
  int* copies;
  CopyCounted(int number, int* count) : value(number), copies(count) {}
  CopyCounted(const CopyCounted& other) : value(other.value), copies(other.copies) { ++*copies; }
  CopyCounted& operator=(const CopyCounted&) = delete;
  ~CopyCounted() = default;
  friend constexpr auto fields(const CopyCounted*) {
    using namespace fanout::literals;
    return fanout::dict("value"_k = &CopyCounted::value);
  }
};

template <class D>
std::string refusal_of(const D& dataset, const LoaderOptions& options) {
  return message_of<fanout::InvalidArgument>([&] { static_cast<void>(Loader{dataset, options}); });
}

}  // namespace

TEST_CASE("a loader gives the samples of each epoch in batches, in the order of its shuffle") {
  const Numbered dataset(10);
  const Loader in_order{dataset, {.batch = 4}};
  CHECK(batches_of(in_order.epoch(0)) == std::vector<Labels>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  CHECK(batches_of(in_order.epoch(7)) == batches_of(in_order.epoch(0)));
  const Loader shuffled{dataset, {.batch = 4, .shuffle = Shuffle{.seed = 1}, .drop_last = true}};
  CHECK(batches_of(shuffled.epoch(0)) == std::vector<Labels>{{7, 8, 0, 3}, {1, 2, 9, 6}});
  CHECK(batches_of(shuffled.epoch(1)) == std::vector<Labels>{{1, 5, 2, 3}, {9, 0, 7, 4}});
  CHECK(in_order.rows() == 10);
  CHECK(in_order.batches() == 3);
  CHECK(shuffled.batches() == 2);
  for (auto&& [x, y] : shuffled.epoch(0)) {
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(x)>, Tensor<float, 2>>);
    CHECK(x.extents() == fanout::Extents<2>{4, 3});
    for (std::size_t row = 0; row < 4; ++row) CHECK(x(row, 2) == static_cast<float>(y[row]));
  }
}

TEST_CASE("batches are the same for any number of workers and any prefetch") {
  const Numbered dataset(103);
  const auto batches = [&dataset](int workers, int prefetch) {
    const Loader loader{dataset, {.batch = 5, .shuffle = Shuffle{.seed = 3}, .workers = workers, .prefetch = prefetch}};
    return batches_of(loader.epoch(2));
  };
  const auto alone = batches(0, 0);
  CHECK(alone.size() == 21);
  for (const int workers : {1, 2, 3, 8}) {
    for (const int prefetch : {1, 2, 5, 100}) {
      CAPTURE(workers);
      CAPTURE(prefetch);
      CHECK(batches(workers, prefetch) == alone);
    }
  }
}

TEST_CASE("a loader goes on from each of its positions with the same batches, with other workers") {
  const Numbered dataset(20);
  const auto options = [](int workers) {
    return LoaderOptions{.batch = 3, .shuffle = Shuffle{.seed = 9}, .workers = workers};
  };
  const Loader first{dataset, options(1)};
  std::vector<Labels> whole;
  std::vector<LoaderPosition> positions{first.position()};
  for (std::uint64_t e = 0; e < 3; ++e) {
    for (auto&& [x, y] : first.epoch(e)) {
      whole.push_back(labels_in(y));
      positions.push_back(first.position());
    }
    CHECK(first.position() == LoaderPosition{.epoch = e + 1, .row = 0, .rows = 20, .seed = 9, .shuffled = true});
  }
  CHECK(positions[0] == LoaderPosition{.epoch = 0, .row = 0, .rows = 20, .seed = 9, .shuffled = true});
  CHECK(positions[1].row == 3);
  CHECK(positions[7] == LoaderPosition{.epoch = 0, .row = 20, .rows = 20, .seed = 9, .shuffled = true});
  for (std::size_t done = 0; done < positions.size(); ++done) {
    CAPTURE(done);
    const Loader later{dataset, options(static_cast<int>(done % 3))};
    std::vector<Labels> rest;
    for (auto at = positions[done]; at.epoch < 3; at = later.position()) {
      for (auto&& [x, y] : later.epoch(at)) rest.push_back(labels_in(y));
    }
    CHECK(rest == std::vector<Labels>(whole.begin() + static_cast<std::ptrdiff_t>(done), whole.end()));
  }
}

TEST_CASE("making an epoch moves the position to its beginning, also that of copies") {
  const Loader loader{Numbered(10), {.batch = 4}};
  const auto copy = loader;
  auto epoch = loader.epoch(7);
  CHECK(copy.position() == LoaderPosition{.epoch = 7, .row = 0, .rows = 10});
  static_cast<void>(epoch.next());
  CHECK(copy.position().row == 4);
}

TEST_CASE("with another batch, a loader goes on at the same sample") {
  const Numbered dataset(10);
  const Loader first{dataset, {.batch = 4, .shuffle = Shuffle{.seed = 1}}};
  auto epoch = first.epoch(0);
  static_cast<void>(epoch.next());
  const Loader later{dataset, {.batch = 3, .shuffle = Shuffle{.seed = 1}}};
  CHECK(batches_of(later.epoch(first.position())) == std::vector<Labels>{{1, 2, 9}, {6, 4, 5}});
}

TEST_CASE("a position is a plain struct of numbers, and one of another loader is refused") {
  static_assert(std::is_aggregate_v<LoaderPosition> && std::is_trivially_copyable_v<LoaderPosition>);
  const Numbered dataset(10);
  const Loader loader{dataset, {.shuffle = Shuffle{.seed = 1}}};
  auto at = loader.position();
  at.seed = 2;
  CHECK(says(message_of<fanout::InvalidArgument>([&] { static_cast<void>(loader.epoch(at)); }), "other samples",
             "Loader::epoch", "a shuffle with seed 1", "a shuffle with seed 2", "the same shuffle"));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { static_cast<void>(loader.epoch(LoaderPosition{})); }), "seed 1",
             "the order of the dataset"));
  at = loader.position();
  at.rows = 11;
  CHECK_NOTHROW(static_cast<void>(loader.epoch(at)));  // between epochs, the dataset may change
  at.row = 3;
  CHECK(says(message_of<fanout::InvalidArgument>([&] { static_cast<void>(loader.epoch(at)); }), "10 rows in an epoch",
             "row 3 of 11"));
  at.rows = 10;
  at.row = 11;
  CHECK(says(message_of<fanout::InvalidArgument>([&] { static_cast<void>(loader.epoch(at)); }), "row 11 of 10"));
  at.row = 10;
  CHECK(batches_of(loader.epoch(at)).empty());
}

TEST_CASE("ranks load parts of one order") {
  const Numbered dataset(23);
  const LoaderOptions options{.batch = 4, .shuffle = Shuffle{.seed = 6}, .workers = 1};
  const Labels whole = joined(batches_of(Loader{dataset, options}.epoch(1)));
  for (const std::size_t ranks : {2U, 3U, 5U}) {
    CAPTURE(ranks);
    Labels all;
    const fanout::Plan plan = fanout::EvenSplit{}(dataset.size(), ranks);
    for (const fanout::Shard& shard : plan) {
      LoaderOptions own = options;
      own.rows = shard.rows;
      const Loader loader{dataset, own};
      CHECK(loader.rows() == shard.rows.size());
      const Labels mine = joined(batches_of(loader.epoch(1)));
      all.insert(all.end(), mine.begin(), mine.end());
    }
    CHECK(all == whole);
  }
  const Loader padded{dataset, {.rows = PaddedLikeTorch{.rank = 1, .ranks = 5}}};
  CHECK(padded.rows() == 5);
  CHECK(joined(batches_of(padded.epoch(0))) == Labels{1, 6, 11, 16, 21});
}

TEST_CASE("ranks share each batch, and a position of one number of ranks is resumed on another") {
  const Numbered dataset(23);
  const LoaderOptions options{.batch = 6, .shuffle = Shuffle{.seed = 6}, .workers = 1};
  const std::vector<Labels> whole = batches_of(Loader{dataset, options}.epoch(1));  // 6, 6, 6 and 5 samples
  fanout::LoaderPosition at = Loader{dataset, options}.position();
  for (const std::size_t ranks : {2U, 3U, 4U, 5U}) {
    CAPTURE(ranks);
    std::vector<Labels> all(whole.size());
    Labels rest;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      LoaderOptions own = options;
      own.share = {rank, ranks};
      const Loader loader{dataset, own};
      CHECK(loader.rows() == 23);
      CHECK(loader.batches() == 4);
      const std::vector<Labels> mine = batches_of(loader.epoch(1));
      REQUIRE(mine.size() == whole.size());
      for (std::size_t i = 0; i < mine.size(); ++i) {
        CHECK(mine[i].size() >= whole[i].size() / ranks);
        CHECK(mine[i].size() <= (whole[i].size() + ranks - 1) / ranks);
        all[i].insert(all[i].end(), mine[i].begin(), mine[i].end());
      }
      if (at.row != 0) rest.push_back(batches_of(loader.epoch(at)).size());
    }
    CHECK(all == whole);
    CHECK(rest == Labels(ranks == 2 ? 0 : ranks, 3));  // after one batch of two ranks, three batches of any number
    const Loader first{dataset, {.batch = 6, .shuffle = Shuffle{.seed = 6}, .share = {0, ranks}}};
    auto epoch = first.epoch(1);
    CHECK(epoch.next().has_value());
    at = first.position();
    CHECK(at.row == 6);
  }
}

TEST_CASE("a position behind batches of another size is refused if a rank would have no row of the last batch") {
  const Loader loader{std::vector<int>(12), {.batch = 4, .share = {0, 2}}};
  CHECK(loader.epoch(LoaderPosition{.row = 2, .rows = 12}).size() == 3);
  CHECK(says(message_of<fanout::InvalidArgument>([&] { loader.epoch(LoaderPosition{.row = 3, .rows = 12}); }),
             "no row of the last batch", "found 1"));
}

TEST_CASE("the rows of an epoch can be shared, too, and errors name the rank's own rows") {
  const auto fails = [](std::span<const std::size_t> samples) {
    if (samples[0] == 17) throw std::runtime_error("17");
    return Labels(samples.begin(), samples.end());
  };
  const Loader loader{100, fails, {.batch = 5, .rows = RowRange{10, 20}, .share = {1, 3}}};
  auto epoch = loader.epoch(0);
  CHECK(epoch.next() == Labels{12, 13});
  const std::string text = message_of<fanout::LoadError>([&] { static_cast<void>(epoch.next()); });
  CHECK(says(text, "batch 1", "[7, 9)"));
}

TEST_CASE("a loader borrows a dataset that is a variable, and owns any other") {
  std::vector<int> numbers{1, 2, 3};
  const Loader borrows{numbers, {.batch = 2}};
  static_assert(std::is_same_v<decltype(borrows), const Loader<std::vector<int>&>>);
  numbers[0] = 7;
  for (auto&& batch : borrows.epoch(0)) {
    CHECK(batch[0] == 7);
    break;
  }
  const auto counted = std::make_shared<int>(1);
  struct Held {
    std::shared_ptr<int> held;
    std::size_t size() const { return 2; }
    int operator[](std::size_t) const { return *held; }
  };
  {
    auto owns = std::make_unique<Loader<Held>>(Held{counted}, LoaderOptions{.batch = 1, .workers = 1});
    CHECK(counted.use_count() == 2);
    auto epoch = owns->epoch(0);
    CHECK(epoch.next().has_value());
    owns.reset();  // in the middle of the epoch, which keeps the dataset
    CHECK(counted.use_count() == 2);
    CHECK((*epoch.next())[0] == 1);
    CHECK(!epoch.next());
  }
  CHECK(counted.use_count() == 1);
}

TEST_CASE("samples that the dataset stores are not copied before they are stacked") {
  int copies = 0;
  std::vector<CopyCounted> stored;
  stored.reserve(2);
  stored.emplace_back(3, &copies);
  stored.emplace_back(4, &copies);
  for (auto&& [value] : Loader{stored, {.batch = 2}}.epoch(0)) CHECK(value[1] == 4);
  CHECK(copies == 0);
}

TEST_CASE("a dataset may be an array, whose samples are its rows") {
  Tensor<int, 2> table({3, 2});
  for (std::size_t i = 0; i < 6; ++i) table.data()[i] = static_cast<int>(i);
  std::vector<int> elements;
  for (auto&& rows : Loader{table, {.batch = 2}}.epoch(0)) elements.insert(elements.end(), rows.begin(), rows.end());
  CHECK(elements == std::vector{0, 1, 2, 3, 4, 5});
}

TEST_CASE("an array in the memory of a device is no dataset, but for a function that takes its rows") {
  const fanout::MemorySpace space = fanout_test::RemoteMemory::memory(1).space;
  const auto refused = [](const auto& dataset) {
    return message_of<fanout::DeviceMismatch>([&] { static_cast<void>(Loader{dataset, {.batch = 2}}); });
  };
  int none = 0;  // nobody reads it
  const fanout::View<const int, 1> numbers(&none, {{4}}, space);
  const fanout::View<const int, 2> rows(&none, {{4, 3}}, space);
  CHECK(says(refused(numbers), "a dataset is in the wrong memory", "expected host memory, found the memory of remote:1",
             "to_host"));
  CHECK(says(refused(rows), "wrong memory"));
  const auto count = [](const auto& samples) { return samples.size(); };
  CHECK_THROWS_AS(static_cast<void>(Loader{numbers, {.batch = 2}, count}), fanout::DeviceMismatch);
  CHECK(Loader{rows, {.batch = 2}, count}.epoch(0).next() == std::size_t{2});
}

TEST_CASE("a dataset has no negative number of samples") {
  struct Negative {
    int size() const { return -1; }
    int operator[](std::size_t i) const { return static_cast<int>(i); }
  };
  CHECK(says(refusal_of(Negative(), {}), "negative number of samples", "0 or more", "found -1"));
}

TEST_CASE("a function of your own makes the batch of the samples") {
  const Numbered dataset(5);
  const Loader loader{
      dataset, {.batch = 2, .workers = 1}, [](std::vector<std::pair<Tensor<float, 1>, std::size_t>> all) {
        std::size_t sum = 0;
        for (const auto& [x, label] : all) sum = 100 * sum + label;
        return sum;
      }};
  std::vector<std::size_t> sums;
  for (const std::size_t sum : loader.epoch(0)) sums.push_back(sum);
  CHECK(sums == std::vector<std::size_t>{1, 203, 4});
}

TEST_CASE("a function may make whole batches, alone or as a dataset") {
  const auto function = [](std::span<const std::size_t> samples) { return Labels(samples.begin(), samples.end()); };
  const LoaderOptions options{.batch = 70, .shuffle = Shuffle{.seed = 2}, .workers = 2};
  const Loader loader{100, function, options};
  std::vector<Labels> batches;
  for (auto&& batch : loader.epoch(0)) batches.push_back(batch);
  CHECK(batches.size() == 2);
  CHECK(batches == batches_of(Loader{Numbered(100), options}.epoch(0)));
  CHECK(says(message_of<fanout::InvalidArgument>([&] {
               static_cast<void>(Loader{-1, function});
             }),
             "negative", "found -1"));
  struct Batches {
    std::size_t size() const { return 3; }
    std::size_t operator()(std::span<const std::size_t> samples) const { return samples.size(); }
  };
  std::vector<std::size_t> sizes;
  for (const std::size_t size : Loader{Batches(), {.batch = 2}}.epoch(0)) sizes.push_back(size);
  CHECK(sizes == std::vector<std::size_t>{2, 1});
}

TEST_CASE("the batches of a loader are in the memory that it is told") {
  static std::atomic<std::size_t> allocations;
  const fanout::backend::HostAllocator memory{[](std::size_t bytes) {
    ++allocations;
    return fanout::backend::HostAllocator{}(bytes);
  }};
  const std::vector<int> stored{1, 2, 3};
  for (const int workers : {0, 2}) {
    allocations = 0;
    CHECK(batches_of(Loader{Numbered(10), {.batch = 4, .workers = workers, .pin = memory}}.epoch(0)).size() == 3);
    CHECK(allocations == 6);  // two arrays in each of three batches
    const Loader of_stored{stored, {.batch = 2, .workers = workers, .pin = memory}};
    for (auto&& batch : of_stored.epoch(0)) static_cast<void>(batch);
    CHECK(allocations == 8);
  }
}

TEST_CASE("a function that makes the batches allocates them, so a loader with one refuses to be told a memory") {
  const fanout::backend::HostAllocator memory{
      [](std::size_t bytes) { return fanout::backend::HostAllocator{}(bytes); }};
  const auto refused = [](const auto& make) { return message_of<fanout::InvalidArgument>(make); };
  const LoaderOptions pinned{.pin = memory};
  CHECK(says(refused([&] {
               Loader{Numbered(4), pinned, [](const auto& samples) { return samples.size(); }};
             }),
             "LoaderOptions::pin", "stacks the samples itself", "fanout::collate(samples, memory)"));
  CHECK(says(refused([&] {
               Loader{4, [](std::span<const std::size_t> samples) { return samples.size(); }, pinned};
             }),
             "LoaderOptions::pin"));
}

TEST_CASE("a dataset without samples has no batches") {
  const Loader loader{std::vector<int>(), {.batch = 2, .shuffle = Shuffle{}, .workers = 2}};
  CHECK(loader.batches() == 0);
  CHECK(!loader.epoch(0).next());
  CHECK(loader.position().epoch == 1);
}

TEST_CASE("invalid options are refused when the loader is made, with field, expected, found and advice") {
  const std::vector<int> five(5);
  CHECK(says(refusal_of(five, {.batch = 0}), "LoaderOptions::batch", "1 or more", "found 0"));
  CHECK(says(refusal_of(five, {.workers = -1}), "LoaderOptions::workers", "0 or more", "found -1", "own thread"));
  CHECK(says(refusal_of(five, {.workers = 2, .prefetch = 0}), "LoaderOptions::prefetch", "1 or more", "found 0",
             "leave it out"));
  CHECK(says(refusal_of(five, {.prefetch = -1}), "a negative number of batches", "LoaderOptions::prefetch", "0 or more",
             "found -1"));
  CHECK(says(refusal_of(five, {.workers = 1, .prefetch = -1}), "a negative number of batches", "1 or more"));
  CHECK_NOTHROW(static_cast<void>(Loader{five, {.prefetch = 0}}));
  CHECK(says(refusal_of(five, {.rows = RowRange{2, 6}}), "LoaderOptions::rows", "rows within [0, 5)", "found [2, 6)",
             "ranks.rows"));
  CHECK(says(refusal_of(five, {.rows = RowRange{3, 2}}), "LoaderOptions::rows", "found [3, 2)"));
  CHECK_NOTHROW(static_cast<void>(Loader{five, {.rows = RowRange{5, 5}}}));
  CHECK(says(refusal_of(five, {.rows = PaddedLikeTorch{.rank = 4, .ranks = 4}}), "Invalid rank 4",
             "rank should be in the interval [0, 3]", "found 4"));
  CHECK(says(refusal_of(five, {.rows = PaddedLikeTorch{.rank = -1, .ranks = 4}}), "Invalid rank -1"));
  CHECK(says(refusal_of(five, {.rows = PaddedLikeTorch{.rank = 0, .ranks = 0}}), "1 rank or more", "found 0"));
  CHECK(says(refusal_of(five, {.batch = 5, .share = {2, 2}}), "LoaderOptions::share", "a rank below 2", "found 2"));
  CHECK(says(refusal_of(five, {.batch = 5, .share = {0, 0}}), "no ranks", "LoaderOptions::share", "1 rank or more"));
  CHECK(says(refusal_of(five, {.batch = 2, .share = {0, 3}}), "LoaderOptions::batch", "3 or more", "found 2"));
  CHECK(says(refusal_of(five, {.batch = 4, .share = {0, 2}}), "no row of the last batch", "LoaderOptions::share",
             "2 rows or more", "found 1", "drop_last"));
  CHECK_NOTHROW(static_cast<void>(Loader{five, {.batch = 4, .drop_last = true, .share = {0, 2}}}));
  CHECK_NOTHROW(static_cast<void>(Loader{five, {.batch = 3, .share = {1, 2}}}));
}
