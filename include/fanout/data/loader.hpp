// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/data/dataset.hpp>
#include <fanout/data/epoch_order.hpp>
#include <fanout/data/loader_epoch.hpp>
#include <fanout/data/loader_options.hpp>
#include <fanout/data/loader_position.hpp>

namespace fanout { inline namespace v0 {

/// Loads the samples of a dataset in batches, in an order of its own in each epoch, on threads that work ahead:
///
///     fanout::Loader loader{digits, {.batch = 128, .shuffle = fanout::Shuffle{.seed = 1}, .workers = 2}};
///     for (std::uint64_t e = 0; e < 10; ++e)
///       for (auto&& [x, y] : loader.epoch(e)) train(x, y);
///
/// A dataset has `size()` and a const `operator[](i)`, which returns a sample: any tree. If it returns a reference or a
/// view, what that shows must stay as it is until the batch is made: all samples of a batch are accessed before any is
/// stacked. collate() makes a batch of the samples, or a function of your own: `Loader{dataset, options, collate}`,
/// which receives a std::vector of samples. A dataset may also make whole batches, by a const call `dataset(samples)`
/// with the numbers of the samples as a std::span<const std::size_t>. `Loader{size, function, options}` takes such a
/// function alone. Workers access the dataset, and call the functions, at the same time.
///
/// Batches come in their order, whichever worker is first. They depend only on the dataset, the options and the epoch,
/// not on the number of workers. Random numbers for a sample should depend on its number and the epoch, not on a
/// thread: `RandomStream random(seed, epoch, i)`.
///
/// Owns a dataset that is passed as an rvalue, and borrows an lvalue, which must outlive the loader and its epochs and
/// stay unchanged. Several threads may use a loader at once, each with an epoch of its own.
template <class Dataset, class Collate = detail::StackSamples>
class Loader {
  using D = std::remove_cvref_t<Dataset>;
  using State = detail::LoaderState<Dataset, Collate>;
  static_assert(
      detail::IndexedDataset<D> || detail::BatchDataset<D>,
      "fanout: a loader needs a dataset with size() and operator[](i), or with size() and a call operator "
      "that takes std::span<const std::size_t>; both must be const, since workers call them at the same time");
  static_assert(!detail::BatchDataset<D> || std::is_same_v<Collate, detail::StackSamples>,
                "fanout: this dataset makes whole batches, so a collate function has nothing to do; leave it out");

 public:
  /// The size of the dataset is asked for once, here. Throws InvalidArgument for invalid options or a negative size.
  /// Throws DeviceMismatch if the dataset is an array in another memory than the host's.
  explicit Loader(Dataset&& dataset, const LoaderOptions& options = {}, Collate collate = {})
      : state_(std::make_shared<State>(std::forward<Dataset>(dataset), options, std::move(collate))) {}

  /// A function that makes batches of `size` samples. Throws InvalidArgument for invalid options.
  template <std::integral I, class F, std::same_as<detail::BatchFunction<F>> = Dataset>
  Loader(I size, F function, const LoaderOptions& options = {})
      : Loader(detail::BatchFunction<F>(detail::checked_samples(size), std::move(function)), options) {}

  /// The batches of an epoch, from its first one on. Each epoch has an order of its own if the loader shuffles.
  LoaderEpoch<Dataset, Collate> epoch(std::uint64_t epoch) const { return from(epoch, 0); }

  /// The rest of an epoch, from a position that this loader, or a loader of an earlier run, has returned. Also with
  /// another number of workers. If the batch is the same, so are the batches. Throws InvalidArgument if the position is
  /// of another shuffle, or, inside of an epoch, of another number of rows, and if a rank would have no row of the last
  /// batch, as it may be behind batches of another size.
  LoaderEpoch<Dataset, Collate> epoch(const LoaderPosition& from) const {
    const LoaderPosition own = state_->position(from.epoch, 0);
    const auto order = [](const LoaderPosition& of) {
      return of.shuffled ? "a shuffle with seed " + std::to_string(of.seed) : std::string("the order of the dataset");
    };
    if (own.shuffled != from.shuffled || own.seed != from.seed) {
      refuse_position(order(own), order(from), "make the loader with the same shuffle, or start at an epoch's number");
    }
    if (from.row != 0 && (own.rows != from.rows || from.row > from.rows)) {
      refuse_position(std::to_string(own.rows) + " rows in an epoch",
                      "row " + std::to_string(from.row) + " of " + std::to_string(from.rows),
                      "go on with the same dataset and the same rows, or start at an epoch's number");
    }
    return this->from(from.epoch, static_cast<std::size_t>(from.row));
  }

  /// Where the loop is: behind the last batch that an epoch of this loader has given out. At the end of an epoch, the
  /// start of the next one. epoch() moves it to where that epoch begins. Before the first epoch, the start of epoch 0.
  /// Copies of a loader share it. Save it to go on in a later run:
  ///
  ///     for (auto at = loader.position(); at.epoch < 10; at = loader.position())
  ///       for (auto&& [x, y] : loader.epoch(at)) train(x, y);
  LoaderPosition position() const noexcept { return state_->at(); }

  /// The number of rows in an epoch, of all ranks that share the batches.
  std::size_t rows() const noexcept { return detail::rows_of_epoch(state_->options, state_->samples); }

  /// The number of batches in an epoch.
  std::size_t batches() const { return detail::EpochOrder(state_->options, state_->samples, 0, 0).batches(); }

  const LoaderOptions& options() const noexcept { return state_->options; }

 private:
  LoaderEpoch<Dataset, Collate> from(std::uint64_t epoch, std::size_t row) const {
    return {state_, detail::EpochOrder(state_->options, state_->samples, epoch, row)};
  }

  [[noreturn]] static void refuse_position(std::string_view expected, std::string_view found, const char* advice) {
    throw InvalidArgument(explain({.what = "a position of another loader, which would give other samples",
                                   .where = "Loader::epoch",
                                   .expected = expected,
                                   .found = found,
                                   .advice = advice}));
  }

  std::shared_ptr<State> state_;
};

template <class D>
Loader(D&&, LoaderOptions = {}) -> Loader<D>;
template <class D, class Collate>
Loader(D&&, LoaderOptions, Collate) -> Loader<D, Collate>;
template <std::integral I, class F>
Loader(I, F, LoaderOptions = {}) -> Loader<detail::BatchFunction<F>>;

}}  // namespace fanout::v0
