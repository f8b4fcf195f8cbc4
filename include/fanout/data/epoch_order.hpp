// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/data/loader_options.hpp>
#include <fanout/data/loader_position.hpp>
#include <fanout/data/shuffle.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

[[noreturn]] FANOUT_INLINE void refuse_loader(std::string_view what, const char* field, std::string_view expected,
                                              std::string_view found, std::string_view advice = {});

FANOUT_INLINE void check_share(const LoaderOptions& options);

/// Throws InvalidArgument unless a loader of `samples` samples can have these options.
FANOUT_INLINE void check_loader(const LoaderOptions& options, std::size_t samples);

/// The number of rows that a loader with these options has in an epoch.
FANOUT_INLINE std::size_t rows_of_epoch(const LoaderOptions& options, std::size_t samples) noexcept;

/// The samples of the batches of one epoch, from one of its rows on: a pure function, which threads may share.
class EpochOrder {
 public:
  /// The options must have been checked for so many samples. Throws InvalidArgument if a rank would have no row of the
  /// last batch.
  FANOUT_INLINE EpochOrder(const LoaderOptions& options, std::size_t samples, std::uint64_t epoch,
                           std::size_t first_row);

  std::uint64_t epoch() const noexcept { return epoch_; }
  /// The number of batches from the first row on.
  std::size_t batches() const noexcept { return batches_; }
  /// The number of the i-th of these batches in the whole epoch.
  std::size_t number(std::size_t i) const noexcept { return first_row_ / batch_ + i; }

  /// This loader's rows of the i-th batch.
  RowRange own_rows(std::size_t i) const noexcept {
    const RowRange all = rows(i);
    const RowRange own = EvenParts(all.size(), share_.ranks)[share_.rank];
    return {all.first + own.first, all.first + own.last};
  }

  /// The rows of the i-th batch, of all ranks.
  RowRange rows(std::size_t i) const noexcept {
    const std::size_t first = first_row_ + i * batch_;
    return {first, rows_ - first < batch_ ? rows_ : first + batch_};
  }

  /// The sample in this row.
  std::size_t sample(std::size_t row) const {
    std::size_t place = offset_ + row * stride_;
    if (place >= samples_) place %= samples_;  // only if it is padded: the order repeats from its start
    return shuffled_ ? (*shuffled_)[place] : place;
  }

 private:
  std::uint64_t epoch_;
  std::size_t samples_;
  std::size_t rows_;
  std::size_t first_row_;
  std::size_t batch_;
  LoaderOptions::Share share_;
  std::size_t batches_;
  std::size_t offset_ = 0;
  std::size_t stride_ = 1;
  std::optional<Shuffle::Order> shuffled_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/data/epoch_order.ipp>
#endif
