// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/rendezvous_places.hpp>

#include <algorithm>
#include <string>

namespace fanout { inline namespace v0 { namespace detail {

RendezvousPlaces::RendezvousPlaces(const std::vector<std::size_t>& shards, RendezvousTags& tags, int largest_tag) {
  for (std::size_t process = 0; process < shards.size(); ++process) {
    firsts_.push_back(processes_.size());
    if (shards[process] != 0) leaders_.push_back(processes_.size());
    processes_.insert(processes_.end(), shards[process], process);
    most_ = std::max(most_, shards[process]);
  }
  firsts_.push_back(processes_.size());
  const std::size_t tags_of_call = streams * most_ * most_;
  const std::size_t all = static_cast<std::size_t>(largest_tag) - tags_of_others;
  if (all < 2 * tags_of_call) {
    throw Error(explain({.what = "too many shards on a rank for the tags of this MPI",
                         .where = "ctx.communicator()",
                         .expected = "MPI_TAG_UB of " + std::to_string(2 * tags_of_call + tags_of_others) + " or more",
                         .found = std::to_string(largest_tag)}));
  }
  first_tag_ = tags_of_others + tags.draw(tags_of_call, all);
}

}}}  // namespace fanout::v0::detail
