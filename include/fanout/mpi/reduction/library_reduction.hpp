// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fanout/collective/process_ranks.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/reduction/mpi_numbers.hpp>
#include <fanout/mpi/reduction/reduced_message.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Combines values of all ranks in place by MPI_Allreduce. The values are the same on all ranks but for their elements,
/// and their memories.
class LibraryReduction {
 public:
  struct Limits {
    std::size_t numbers = std::size_t{1} << 30;       ///< in one call: MPI 3 counts in ints
    std::size_t packed_bytes = std::size_t{1} << 20;  ///< larger values travel alone, without a copy
  };

  /// True if MPI combines such values.
  static bool takes(const backend::RankFold& fold) noexcept { return MpiNumbers(fold.numbers).known(); }

  /// Sends nothing yet, but copies values into messages. With `takes_devices`, MPI takes device memory; a rank that may
  /// not count must send from host memory. Borrows the values' elements.
  LibraryReduction(const RankGroup& group, std::vector<backend::RankedValue> values, bool takes_devices,
                   const Limits& limits)
      : group_(group), values_(std::move(values)), limits_(limits) {
    for (const backend::RankedValue& value : values_) {
      if (value.count != 0) add(value);
    }
    for (ReducedMessage& message : messages_) message.prepare(takes_devices);
  }
  LibraryReduction(const RankGroup& group, std::vector<backend::RankedValue> values, bool takes_devices)
      : LibraryReduction(group, std::move(values), takes_devices, Limits()) {}
  LibraryReduction(const LibraryReduction&) = delete;
  LibraryReduction& operator=(const LibraryReduction&) = delete;

  /// `counts`: false if this rank has no rows, but another rank has. Waits for all ranks. Throws MpiError.
  void run(bool counts) {
    for (ReducedMessage& message : messages_) {
      if (!counts) message.exclude();
      message.reduce(group_.get(), limits_.numbers);
    }
  }

  /// Copies the results to where the values are. Call it after run().
  void finish() const {
    for (const ReducedMessage& message : messages_) message.finish();
  }

 private:
  void add(const backend::RankedValue& value) {
    const bool is_small = value.count * value.fold->element_size <= limits_.packed_bytes;
    const auto open = std::find_if(messages_.begin(), messages_.end(),
                                   [&](const ReducedMessage& message) { return message.takes(value); });
    if (is_small && open != messages_.end()) {
      open->add(value);
    } else {
      messages_.emplace_back(value, is_small);
    }
  }

  const RankGroup& group_;
  std::vector<backend::RankedValue> values_;
  Limits limits_;
  std::vector<ReducedMessage> messages_;
};

}}}  // namespace fanout::v0::detail
