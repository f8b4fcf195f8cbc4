// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include <mpi.h>

#include <fanout/collective/collective.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/collective/rank_elements.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/rank_group.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Combines a few values of all ranks in place. Each rank gets the values of all ranks, and combines them in the order
/// of the ranks. The result is bitwise that of SlicedReduction, which sends more messages and fewer bytes. MPI may
/// gather as it likes, since it computes nothing. The values are in host memory, and the same on all ranks but for
/// their elements.
class GatheredReduction {
 public:
  /// True if these values are so few that sending messages takes longer than sending bytes.
  static bool fits(std::span<const backend::RankedValue> values) noexcept {
    std::size_t room = 0;
    for (const backend::RankedValue& value : values) {
      if (value.count > largest) return false;
      room = begin_of(value, room) + bytes_of(value);
      if (room > largest) return false;
    }
    return true;
  }

  /// Sends nothing yet. Borrows the values.
  GatheredReduction(const RankGroup& group, std::span<const backend::RankedValue> values)
      : group_(group), values_(values) {
    for (const backend::RankedValue& value : values_) {
      at_.push_back(begin_of(value, room_));
      room_ = at_.back() + bytes_of(value);
      may_throw_ = may_throw_ || value.fold->may_throw;
    }
    room_ = (room_ + boundary - 1) / boundary * boundary;
    received_ = Storage(backend::Memory{}, room_ * ranks());
    counting_.reserve(ranks());
  }

  /// As SlicedReduction::run().
  void run(const std::vector<bool>& counts) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].count == 0) continue;
      std::memcpy(of_rank(static_cast<std::size_t>(group_.rank())) + at_[i], values_[i].data, bytes_of(values_[i]));
    }
    check_mpi(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, received_.data(), static_cast<int>(room_), MPI_BYTE,
                            group_.get()),
              "MPI_Allgather");
    const std::exception_ptr failure = RankGroup::exception_of([&] { combine(counts); });  // only of the values
    if (may_throw_) group_.agree(failure);
  }

 private:
  static constexpr std::size_t largest = 1024;  // with 1,024 ranks that is 1 MiB for each of them
  static constexpr std::size_t boundary = backend::RankFold::largest_alignment;  // fits every type

  static std::size_t bytes_of(const backend::RankedValue& value) noexcept {
    return value.count * value.fold->element_size;
  }
  /// The first place from `at` on that fits the type: its alignment divides its size.
  static std::size_t begin_of(const backend::RankedValue& value, std::size_t at) noexcept {
    const std::size_t size = value.fold->element_size;
    const std::size_t alignment = std::min(boundary, size & (~size + 1));
    return (at + alignment - 1) / alignment * alignment;
  }
  std::size_t ranks() const noexcept { return static_cast<std::size_t>(group_.size()); }
  std::byte* of_rank(std::size_t rank) const noexcept {
    return static_cast<std::byte*>(received_.data()) + rank * room_;
  }

  void combine(const std::vector<bool>& counts) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const backend::RankFold& fold = *values_[i].fold;
      counting_.clear();
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        if (fold.counts_empty || counts[rank]) counting_.push_back(of_rank(rank) + at_[i]);
      }
      fold.combine(values_[i].data, backend::RankElements::in(counting_), values_[i].count);
    }
  }

  const RankGroup& group_;
  std::span<const backend::RankedValue> values_;
  bool may_throw_ = false;
  std::vector<std::size_t> at_;  // where each value begins in what one rank sends
  std::size_t room_ = 0;         // for the values of one rank
  Storage received_;
  std::vector<const void*> counting_;  // the elements of a value that are combined
};

}}}  // namespace fanout::v0::detail
