// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/checks.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/data/collate.hpp>
#include <fanout/data/dataset.hpp>
#include <fanout/data/epoch_order.hpp>
#include <fanout/data/load_error.hpp>
#include <fanout/data/loader_options.hpp>
#include <fanout/data/loader_position.hpp>
#include <fanout/data/prefetcher.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/sync/floating_point_modes.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

/// The collate function of a loader that was given none.
struct StackSamples {};

/// What a loader and its epochs share, so that a loader may be destroyed before its epochs.
template <class Dataset, class Collate>
class LoaderState {
 public:
  LoaderState(Dataset&& with, const LoaderOptions& chosen, Collate function)
      : dataset(std::forward<Dataset>(with)),
        samples(samples_of(dataset)),
        options(chosen),
        collate(std::move(function)) {
    check_loader(options, samples);
    check_memory();
    if constexpr (BatchDataset<std::remove_cvref_t<Dataset>> || !std::is_same_v<Collate, StackSamples>) {
      if (options.pin.allocate != nullptr) {
        refuse_loader("memory for batches that a function of yours makes", "pin",
                      "a loader that stacks the samples itself", "a function",
                      "leave `pin` out, and let the function allocate: fanout::collate(samples, memory)");
      }
    }
    static_cast<void>(EpochOrder(options, samples, 0, 0));  // throws if it can have no epochs
    at_ = position(0, 0);
  }

  LoaderPosition position(std::uint64_t epoch, std::size_t row) const noexcept {
    return {.epoch = epoch,
            .row = row,
            .rows = rows_of_epoch(options, samples),
            .seed = options.shuffle ? options.shuffle->seed : 0,
            .shuffled = options.shuffle.has_value()};
  }

  LoaderPosition at() const noexcept {
    const ForkSafeLock reading(mutex_);
    return at_;
  }
  void move_to(const LoaderPosition& position) noexcept {
    const ForkSafeLock moving(mutex_);
    at_ = position;
  }

  const Dataset dataset;  // of a reference, the reference
  const std::size_t samples;
  const LoaderOptions options;
  const Collate collate;

 private:
  /// The host reads the elements of an array. Only a collate function may take rows in another memory.
  void check_memory() const {
    using D = std::remove_cvref_t<Dataset>;
    if constexpr (ArrayLeaf<D> && requires {
                    { dataset.space() } -> std::convertible_to<MemorySpace>;
                  }) {
      using Sample = decltype(dataset[std::size_t{}]);
      if constexpr (std::is_same_v<Collate, StackSamples> || std::is_lvalue_reference_v<Sample>) {
        const MemorySpace space = dataset.space();
        if (space == host_memory) return;
        throw DeviceMismatch(explain({.what = "a dataset is in the wrong memory",
                                      .where = "Loader",
                                      .expected = to_string(host_memory),
                                      .found = to_string(space),
                                      .advice = "copy it to the host with to_host(x)"}));
      }
    }
  }

  mutable ForkSafeMutex mutex_;
  LoaderPosition at_;
};

/// Loads one batch.
template <class Dataset, class Collate>
class LoadBatch {
 public:
  using State = LoaderState<Dataset, Collate>;

  /// Made on the thread that makes the epoch. Batches are loaded under that thread's floating-point modes.
  LoadBatch(std::shared_ptr<const State> state, const EpochOrder& order) : state_(std::move(state)), order_(order) {}

  const EpochOrder& order() const noexcept { return order_; }

  /// Throws LoadError if the dataset or the collate function throws.
  auto operator()(std::size_t i) const {
    const FloatingPointScope scope(modes_);
    std::optional<std::size_t> sample;
    try {
      return load(order_.own_rows(i), sample);
    } catch (...) {
      throw LoadError(
          {.epoch = order_.epoch(), .batch = order_.number(i), .rows = order_.own_rows(i), .sample = sample},
          std::current_exception());
    }
  }

 private:
  using D = std::remove_cvref_t<Dataset>;

  /// `sample` is the one that is accessed, if any.
  auto load(const RowRange& rows, std::optional<std::size_t>& sample) const {
    const D& dataset = state_->dataset;
    if constexpr (BatchDataset<D>) {
      const InlineArray<std::size_t, 64> samples(rows.size(),
                                                 [&](std::size_t i) { return order_.sample(rows.first + i); });
      return dataset(std::span<const std::size_t>(samples.data(), samples.size()));
    } else if constexpr (!IndexedDataset<D>) {
      return 0;  // the loader has refused it
    } else {
      using Accessed = decltype(dataset[std::size_t{}]);
      using Sample = std::remove_cvref_t<Accessed>;
      const auto access = [&](std::size_t i) -> Accessed {
        sample = order_.sample(rows.first + i);
        return dataset[*sample];
      };
      if constexpr (!std::is_same_v<Collate, StackSamples>) {
        std::vector<Sample> samples;
        samples.reserve(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) samples.push_back(access(i));
        sample.reset();
        return state_->collate(std::move(samples));
      } else if constexpr (std::is_lvalue_reference_v<Accessed>) {
        const ShardResults<Sample> samples(rows.size(), false, access);
        sample.reset();
        return collate_values(samples, state_->options.pin, sample_root);
      } else {
        const InlineArray<Sample> samples(rows.size(), access);
        sample.reset();
        return collate_values(
            ShardResults<Sample>(rows.size(), false, [&](std::size_t i) -> const Sample& { return samples[i]; }),
            state_->options.pin, sample_root);
      }
    }
  }

  std::shared_ptr<const State> state_;
  EpochOrder order_;
  FloatingPointModes modes_ = FloatingPointModes::current();
};

}  // namespace detail

/// The batches of one epoch, made by Loader::epoch(). A range of one pass, whose batches the loop may move from. It may
/// outlive the loader, but not a dataset that the loader borrows. One thread at a time may use it.
///
/// Threads run from the first batch that is asked for until the range is destroyed, begun again or moved to. That waits
/// for the batches in work, and throws the batches away that nobody has taken.
template <class Dataset, class Collate>
class LoaderEpoch {
  using State = detail::LoaderState<Dataset, Collate>;
  using Load = detail::LoadBatch<Dataset, Collate>;
  using Batches = detail::Prefetcher<Load>;

 public:
  using Batch = typename Batches::Value;

  LoaderEpoch(std::shared_ptr<State> state, const detail::EpochOrder& order)
      : state_(std::move(state)), load_(state_, order) {
    state_->move_to(state_->position(order.epoch(), order.rows(0).first));
  }
  /// Throws what moving the current batch throws. Then `other` is as before.
  LoaderEpoch(LoaderEpoch&& other) noexcept(std::is_nothrow_move_constructible_v<Batch>)
      : state_(other.state_), load_(other.load_), current_(std::move(other.current_)) {
    take_rest(other);
  }
  /// The same. Then this epoch has lost its current batch.
  LoaderEpoch& operator=(LoaderEpoch&& other) noexcept(std::is_nothrow_move_constructible_v<Batch>) {
    if (this == &other) return *this;
    current_.reset();
    if (other.current_) current_.emplace(std::move(*other.current_));
    load_ = other.load_;
    state_ = other.state_;
    take_rest(other);
    return *this;
  }
  ~LoaderEpoch() = default;

  /// Goes through the batches. Its copies stand where it stands.
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(LoaderEpoch& epoch) noexcept : epoch_(&epoch) {}

    /// The batch. If FANOUT_CHECKS is 1, throws InvalidArgument at the end.
    Batch& operator*() const {
      if (FANOUT_CHECKS && !epoch_->has_batch()) {
        throw InvalidArgument(explain({.what = "there is no batch at the end of an epoch",
                                       .where = "LoaderEpoch::Iterator",
                                       .advice = "compare with end() first"}));
      }
      return *epoch_->current_;  // NOLINT(bugprone-unchecked-optional-access): the caller compares with end()
    }
    Iterator& operator++() {
      epoch_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return !epoch_->has_batch(); }

   private:
    LoaderEpoch* epoch_;
  };

  /// The next batch, or none after the last one. Waits for it. Throws LoadError in the place of a batch that could not
  /// be loaded; the call after it goes on with the next batch. If the batch's own move throws, the call after it takes
  /// the same batch. Throws Error in the child of a fork.
  std::optional<Batch> next() {
    std::optional<Batch> batch;
    take(batch);
    return batch;
  }

  /// Goes on with the next batch: the first one, the one after a loop that was left, or after a LoadError. After the
  /// end of the epoch, begins it again.
  Iterator begin() {
    if (is_over_) restart();
    advance();
    return Iterator(*this);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

  /// The number of batches that are to come.
  std::size_t size() const noexcept { return load_.order().batches() - taken_; }

 private:
  /// In the child of a fork, the threads that would have to be joined do not exist.
  struct Destroy {
    void operator()(Batches* batches) const noexcept {
      if (!batches->is_lost()) delete batches;
    }
  };

  static_assert(std::is_nothrow_copy_constructible_v<Load> && std::is_nothrow_copy_assignable_v<Load>);

  void take_rest(LoaderEpoch& other) noexcept {
    batches_ = std::move(other.batches_);
    taken_ = other.taken_;
    is_over_ = other.is_over_;
  }

  void start() {
    const LoaderOptions& options = state_->options;
    const auto workers = static_cast<std::size_t>(options.workers);
    const std::size_t ahead = options.prefetch ? static_cast<std::size_t>(*options.prefetch) : 2 * workers;
    batches_.reset(new Batches(load_, load_.order().batches(), workers, ahead));
  }

  /// Moves the loader's position behind the batch that has been given out, or whose place an exception took.
  struct Follow {
    LoaderEpoch& epoch;

    ~Follow() {
      if (epoch.taken_ == epoch.batches_->taken()) return;
      epoch.taken_ = epoch.batches_->taken();
      const detail::EpochOrder& order = epoch.load_.order();
      epoch.state_->move_to(epoch.state_->position(order.epoch(), order.rows(epoch.taken_ - 1).last));
    }
  };

  /// The next batch, into a `batch` that is empty.
  void take(std::optional<Batch>& batch) {
    if (!batches_) start();
    if (batches_->is_lost()) {
      throw Error(explain({.what = "the process was forked in the middle of an epoch",
                           .where = "the child",
                           .expected = "the batches to be taken in the parent, whose threads load them",
                           .advice = "call loader.epoch() again, in the child"}));
    }
    const detail::EpochOrder& order = load_.order();
    if (taken_ == order.batches()) {
      is_over_ = true;
      state_->move_to(state_->position(order.epoch() + 1, 0));
      return;
    }
    const Follow follow{*this};
    batches_->next(batch);
  }

  bool has_batch() const noexcept { return current_.has_value(); }

  void restart() noexcept {
    batches_.reset();
    taken_ = 0;
    is_over_ = false;
  }

  void advance() {
    current_.reset();  // first, so that its memory is free
    take(current_);
  }

  std::shared_ptr<State> state_;
  Load load_;
  std::unique_ptr<Batches, Destroy> batches_;
  std::optional<Batch> current_;
  std::size_t taken_ = 0;
  bool is_over_ = false;
};

}}  // namespace fanout::v0
