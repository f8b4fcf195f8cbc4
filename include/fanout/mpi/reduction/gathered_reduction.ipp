// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/reduction/gathered_reduction.hpp>

#include <cstring>
#include <exception>

#include <fanout/collective/rank_elements.hpp>
#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

bool GatheredReduction::fits(std::span<const backend::RankedValue> values) noexcept {
  std::size_t room = 0;
  for (const backend::RankedValue& value : values) {
    if (value.count > largest) return false;
    room = begin_of(value, room) + bytes_of(value);
    if (room > largest) return false;
  }
  return true;
}

GatheredReduction::GatheredReduction(const RankGroup& group, std::span<const backend::RankedValue> values)
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

void GatheredReduction::run(const std::vector<bool>& counts) {
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

void GatheredReduction::combine(const std::vector<bool>& counts) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const backend::RankFold& fold = *values_[i].fold;
    counting_.clear();
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (fold.counts_empty || counts[rank]) counting_.push_back(of_rank(rank) + at_[i]);
    }
    fold.combine(values_[i].data, backend::RankElements::in(counting_), values_[i].count);
  }
}

}}}  // namespace fanout::v0::detail
