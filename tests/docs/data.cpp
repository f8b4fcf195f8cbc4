// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/data.hpp>
#include <fanout/fanout.hpp>
#include <fanout/state.hpp>

#include "observe/python.hpp"

namespace {

using namespace fanout::literals;

// [dataset]
/// Images of 8 x 8 pixels and their labels. Sample i is an image and its label.
class Digits {
 public:
  explicit Digits(std::size_t count) : images_({count, 8, 8}), labels_(count) {}

  std::size_t size() const { return labels_.size(); }
  std::pair<fanout::View<const float, 2>, int> operator[](std::size_t i) const { return {images_[i], labels_[i]}; }

 private:
  fanout::Tensor<float, 3> images_;
  std::vector<int> labels_;
};
// [/dataset]

// [augmented]
/// Shifts each image by a random column, another one in each epoch.
class Shifted {
 public:
  Shifted(const Digits& digits, std::uint64_t seed, std::uint32_t epoch)
      : digits_(&digits), seed_(seed), epoch_(epoch) {}

  std::size_t size() const { return digits_->size(); }
  std::pair<fanout::Tensor<float, 2>, int> operator[](std::size_t i) const {
    fanout::RandomStream random(seed_, epoch_, i);  // of the sample, not of the thread
    const std::size_t by = random() % 8;
    const auto [image, label] = (*digits_)[i];
    fanout::Tensor<float, 2> shifted(image.extents());
    for (std::size_t y = 0; y < 8; ++y) {
      for (std::size_t x = 0; x < 8; ++x) shifted(y, (x + by) % 8) = image(y, x);
    }
    return {std::move(shifted), label};
  }

 private:
  const Digits* digits_;
  std::uint64_t seed_;
  std::uint32_t epoch_;
};
// [/augmented]

struct Counted {
  std::size_t rows = 0;
  std::size_t steps = 0;
  void operator()(const fanout::Tensor<float, 3>& x, const fanout::Tensor<int, 1>& y) {
    CHECK(x.extent(0) == y.extent(0));
    rows += x.extent(0);
    ++steps;
  }
};

}  // namespace

TEST_CASE("a loader makes batches of a dataset") {
  Counted train;
  // [loop]
  const Digits digits(1'797);
  const fanout::Loader loader{digits,
                              {.batch = 128, .shuffle = fanout::Shuffle{.seed = 1}, .workers = 2, .prefetch = 4}};
  for (std::uint64_t e = 0; e < 3; ++e) {
    for (auto&& [x, y] : loader.epoch(e))
      train(x, y);  // x: Tensor<float, 3> of [128, 8, 8], y: Tensor<int, 1> of [128]
  }
  // [/loop]
  CHECK(train.rows == 3 * 1'797);
  CHECK(train.steps == 3 * 15);
}

TEST_CASE("a position goes on where a run has stopped") {
  Counted train;
  const Digits digits(1'000);
  const fanout::Loader loader{digits, {.batch = 300, .shuffle = fanout::Shuffle{.seed = 1}}};
  const fanout_test::TestFolder folder;
  const std::string path = folder / "position.safetensors";
  {  // an earlier run
    auto epoch = loader.epoch(1);
    CHECK(epoch.next().has_value());
    fanout::save(path, fanout::dict("at"_k = loader.position()));
  }
  // [resume]
  fanout::LoaderPosition at = loader.position();  // the start
  if (std::filesystem::exists(path)) fanout::load(path, fanout::dict("at"_k = std::ref(at)));
  for (; at.epoch < 3; at = loader.position()) {
    for (auto&& [x, y] : loader.epoch(at)) {
      train(x, y);
      fanout::save(path, fanout::dict("at"_k = loader.position()));  // behind this batch
    }
  }
  // [/resume]
  CHECK(train.rows == 700 + 1'000);
}

TEST_CASE("errors come in the place of their batches") {
  struct Files {
    std::size_t size() const { return 10; }
    int operator[](std::size_t i) const {
      if (i == 5) throw std::runtime_error("cannot read file 5");
      return static_cast<int>(i);
    }
  };
  std::vector<std::string> log;
  std::size_t rows = 0;
  const fanout::Loader loader{Files(), {.batch = 2, .workers = 2}};
  // [errors]
  auto epoch = loader.epoch(0);
  for (bool over = false; !over;) {
    try {
      for (auto&& batch : epoch) rows += batch.size();  // goes on behind the batch that failed
      over = true;
    } catch (const fanout::LoadError& error) {
      log.emplace_back(error.what());
    }
  }
  // [/errors]
  CHECK(rows == 8);
  REQUIRE(log.size() == 1);
  CHECK(
      log[0] ==
      "Caught std::runtime_error in a Loader, epoch 0, batch 2, rows [4, 6) of the order, sample 5. Original message: "
      "cannot read file 5");
}

TEST_CASE("functions make batches of their own") {
  const Digits digits(10);
  // [collate]
  const fanout::Loader with_weights{
      digits, {.batch = 4}, [](const std::vector<std::pair<fanout::View<const float, 2>, int>>& samples) {
        auto [x, y] = fanout::collate(samples);  // what the loader does by itself
        return std::tuple{std::move(x), std::move(y), fanout::Tensor<float, 1>::full({samples.size()}, 0.5F)};
      }};
  // [/collate]
  for (auto&& [x, y, weights] : with_weights.epoch(0)) CHECK(weights.extent(0) == x.extent(0));
  // [batches]
  const fanout::Loader squares{100,
                               [](std::span<const std::size_t> samples) {
                                 fanout::Tensor<double, 1> batch(samples.size());
                                 for (std::size_t i = 0; i < samples.size(); ++i)
                                   batch[i] = static_cast<double>(samples[i] * samples[i]);
                                 return batch;
                               },
                               {.batch = 40}};
  // [/batches]
  std::vector<double> all;
  for (auto&& batch : squares.epoch(0)) all.insert(all.end(), batch.begin(), batch.end());
  CHECK(all.size() == 100);
  CHECK(all[99] == 99 * 99);
}

TEST_CASE("random numbers of samples do not depend on workers") {
  const Digits digits(50);
  const auto labels = [&digits](int workers) {
    int sum = 0;
    // [use_augmented]
    const std::uint32_t e = 3;
    const fanout::Loader loader{Shifted(digits, 7, e), {.batch = 16, .workers = workers}};
    for (auto&& [x, y] : loader.epoch(e)) sum += y[0] + static_cast<int>(x.extent(0));
    // [/use_augmented]
    return sum;
  };
  CHECK(labels(0) == labels(2));
}

TEST_CASE("an order is a function") {
  // [order]
  const auto order = fanout::Shuffle{.seed = 1}.order(2, 60'000);  // of epoch 2, 48 bytes
  const std::uint64_t sample = order[59'999];                      // the last sample of the epoch
  const std::uint64_t place = order.place_of(sample);              // 59'999
  // [/order]
  CHECK(place == 59'999);
}

TEST_CASE("a stream of results runs one batch ahead") {
  const Digits digits(300);
  std::size_t seen = 0;
  const auto write = [&seen](const fanout::Tensor<float, 1>& scores) { seen += scores.size(); };
  const fanout::Loader loader{digits, {.batch = 128, .workers = 1}};
  // [stream]
  const fanout::ParallelModel model{[](fanout::View<const float, 3> images, fanout::View<const int, 1>) {
                                      fanout::Tensor<float, 1> scores(images.extent(0));
                                      for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = images(i, 4, 4);
                                      return scores;
                                    },
                                    fanout::host_devices(2)};
  for (auto&& scores : model.stream(loader.epoch(0))) write(scores);
  // [/stream]
  CHECK(seen == 300);
}
