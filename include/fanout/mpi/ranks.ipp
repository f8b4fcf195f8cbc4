// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/ranks.hpp>

#include <memory>

#include <fanout/mpi/reduction/library_reduction.hpp>

namespace fanout { inline namespace v0 { namespace mpi {

Ranks::Ranks(MPI_Comm of, const RanksOptions& options)
    : options_(options), group_(of, options.survive), node_(group_), models_(group_, options, reduction_by_library()) {
  const detail::RankGroup::Exchange exchange(group_);
  std::string text;
  const std::exception_ptr failure = detail::RankGroup::exception_of([&] {
    check(options);
    text = detail::described(options);
  });
  group_.agree(text, failure);
}

detail::RanksOfModels::ByLibrary Ranks::reduction_by_library() const {
  return [this](detail::CollectedValues& values, bool takes_devices) {
    return std::unique_ptr<detail::TakenValues>(std::make_unique<detail::LibraryReduction>(
        group_,
        values.take_if([](const backend::RankedValue& value) { return detail::LibraryReduction::takes(*value.fold); }),
        takes_devices));
  };
}

void Ranks::check(const RanksOptions& options) {
  if (options.survive) detail::MpiGroup::check_survives();
  if (options.gpu_aware && options.reduce != by_library) {
    throw InvalidArgument(explain({.what = "gpu_aware without by_library",
                                   .where = "RanksOptions::gpu_aware",
                                   .expected = ".reduce = fanout::mpi::by_library",
                                   .found = "in_rank_order, which sends from host memory"}));
  }
  if (options.deadline.nanoseconds() < 0) {
    throw InvalidArgument(explain(
        {.what = "a negative time", .where = "RanksOptions::deadline", .expected = "how long ranks may be late"}));
  }
}

void Ranks::check_root(std::size_t root) const {
  if (root < size()) return;
  throw InvalidArgument(explain({.what = "a root that is no rank",
                                 .expected = "a rank below " + std::to_string(size()),
                                 .found = std::to_string(root)}));
}

}}}  // namespace fanout::v0::mpi
