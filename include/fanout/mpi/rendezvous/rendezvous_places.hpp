// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/mpi/group/messages.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Where the tags of the next call begin: those of calls that run at the same time must differ, however many each call
/// needs. All processes draw the tags of the same calls in the same order, and so the same ones.
class RendezvousTags {
 public:
  /// The first of `count` tags out of `all`, which must be as many or more. After the last tags, the first ones follow.
  std::size_t draw(std::size_t count, std::size_t all) noexcept {
    if (all - count < next_) next_ = 0;
    return std::exchange(next_, next_ + count);
  }

 private:
  std::size_t next_ = 0;
};

/// Which process has which ranks of an MpiRendezvous, and the tags of messages between two of them.
class RendezvousPlaces {
 public:
  /// What travels between two ranks. Messages of one stream stay in order.
  enum class Stream : unsigned char { notes, collectives, between_two, releases };

  /// `shards`: the number of ranks of each process. Draws from `tags`. `largest_tag`: MPI_TAG_UB. Throws Error if there
  /// are too few tags for two such calls.
  FANOUT_INLINE RendezvousPlaces(const std::vector<std::size_t>& shards, RendezvousTags& tags, int largest_tag);

  std::size_t size() const noexcept { return processes_.size(); }
  std::size_t process(std::size_t rank) const noexcept { return processes_[rank]; }
  /// The ranks of a process.
  RowRange ranks_of(std::size_t process) const noexcept { return {firsts_[process], firsts_[process + 1]}; }

  /// The first rank of each process that has any.
  const std::vector<std::size_t>& leaders() const noexcept { return leaders_; }

  int tag(Stream stream, std::size_t from, std::size_t to) const noexcept {
    return static_cast<int>(first_tag_ + (static_cast<std::size_t>(stream) * most_ + local(from)) * most_ + local(to));
  }

  /// Of messages between processes.
  int tag_of_processes(Stream stream) const noexcept {
    return static_cast<int>(first_tag_ + static_cast<std::size_t>(stream) * most_ * most_);
  }

 private:
  static constexpr std::size_t streams = 4;
  static constexpr std::size_t tags_of_others = MessageTag::rendezvous;

  std::size_t local(std::size_t rank) const noexcept { return rank - firsts_[process(rank)]; }

  std::vector<std::size_t> processes_;  // of each rank
  std::vector<std::size_t> firsts_;     // the first rank of each process, and the number of all ranks
  std::vector<std::size_t> leaders_;
  std::size_t most_ = 1;  // ranks of a process
  std::size_t first_tag_ = 0;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/rendezvous_places.ipp>
#endif
