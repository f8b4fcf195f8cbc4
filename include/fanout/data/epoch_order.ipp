// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/data/epoch_order.hpp>

#include <variant>

#include <fanout/data/padded_like_torch.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void refuse_loader(std::string_view what, const char* field, std::string_view expected, std::string_view found,
                   std::string_view advice) {
  throw InvalidArgument(explain({.what = what,
                                 .where = std::string("LoaderOptions::") + field,
                                 .expected = expected,
                                 .found = found,
                                 .advice = advice}));
}

void check_share(const LoaderOptions& options) {
  const LoaderOptions::Share& share = options.share;
  if (share.ranks == 0) refuse_loader("no ranks", "share", "1 rank or more", "0");
  if (share.rank >= share.ranks) {
    refuse_loader("no such rank", "share", "a rank below " + std::to_string(share.ranks), std::to_string(share.rank));
  }
  if (options.batch < share.ranks) {
    refuse_loader("a rank would have no row of a batch", "batch",
                  "the rows of all ranks together, " + std::to_string(share.ranks) + " or more",
                  std::to_string(options.batch));
  }
}

void check_loader(const LoaderOptions& options, std::size_t samples) {
  if (options.batch == 0) refuse_loader("batches without rows", "batch", "1 or more", "0");
  if (options.workers < 0) {
    refuse_loader("a negative number of threads", "workers", "0 or more", std::to_string(options.workers),
                  "with 0 the loop's own thread loads");
  }
  if (options.prefetch && *options.prefetch < 0) {
    refuse_loader("a negative number of batches", "prefetch", options.workers > 0 ? "1 or more" : "0 or more",
                  std::to_string(*options.prefetch), "leave it out for two batches for each worker");
  }
  if (options.prefetch && *options.prefetch == 0 && options.workers > 0) {
    refuse_loader("workers could never load a batch", "prefetch", "1 or more", "0",
                  "leave it out for two batches for each worker, or set workers = 0 to load without threads");
  }
  if (const auto* const range = std::get_if<RowRange>(&options.rows)) {
    if (range->first > range->last || range->last > samples) {
      refuse_loader("rows that the dataset does not have", "rows", "rows within " + to_string(RowRange{0, samples}),
                    to_string(*range), "take ranks.rows(dataset.size())");
    }
  }
  if (const auto* const padded = std::get_if<PaddedLikeTorch>(&options.rows)) {
    if (padded->ranks < 1) refuse_loader("no ranks", "rows", "1 rank or more", std::to_string(padded->ranks));
    if (padded->rank < 0 || padded->rank >= padded->ranks) {
      refuse_loader("Invalid rank " + std::to_string(padded->rank), "rows",
                    "rank should be in the interval [0, " + std::to_string(padded->ranks - 1) + "]",
                    std::to_string(padded->rank));
    }
  }
  check_share(options);
}

std::size_t rows_of_epoch(const LoaderOptions& options, std::size_t samples) noexcept {
  if (const auto* const range = std::get_if<RowRange>(&options.rows)) return range->size();
  if (const auto* const padded = std::get_if<PaddedLikeTorch>(&options.rows)) {
    const auto ranks = static_cast<std::size_t>(padded->ranks);
    return samples / ranks + (samples % ranks != 0 ? 1 : 0);
  }
  return samples;
}

EpochOrder::EpochOrder(const LoaderOptions& options, std::size_t samples, std::uint64_t epoch, std::size_t first_row)
    : epoch_(epoch),
      samples_(samples),
      rows_(rows_of_epoch(options, samples)),
      first_row_(first_row),
      batch_(options.batch),
      share_(options.share) {
  const std::size_t left = rows_ - first_row_;
  const std::size_t last = options.drop_last ? 0 : left % batch_;
  batches_ = left / batch_ + (last != 0 ? 1 : 0);
  if (last != 0 && last < share_.ranks) {
    refuse_loader("a rank would have no row of the last batch of an epoch", "share",
                  std::to_string(share_.ranks) + " rows or more", std::to_string(last),
                  "choose another batch, or set drop_last");
  }
  if (options.shuffle) shuffled_.emplace(options.shuffle->order(epoch, samples));
  if (const auto* const range = std::get_if<RowRange>(&options.rows)) offset_ = range->first;
  if (const auto* const padded = std::get_if<PaddedLikeTorch>(&options.rows)) {
    offset_ = static_cast<std::size_t>(padded->rank);
    stride_ = static_cast<std::size_t>(padded->ranks);
  }
}

}}}  // namespace fanout::v0::detail
