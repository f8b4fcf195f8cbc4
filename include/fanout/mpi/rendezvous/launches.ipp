// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/launches.hpp>

#include <algorithm>

namespace fanout { inline namespace v0 { namespace detail {

std::shared_ptr<Launch> Launches::join(std::size_t rank, const std::vector<backend::Collective*>& own) {
  const backend::Collective& one = *own.front();
  const bool sends = one.kind == backend::Collective::Kind::send;
  const std::size_t from = !one.is_between_two() ? 0 : sends ? rank : one.root;
  const std::size_t to = !one.is_between_two() ? 0 : sends ? one.root : rank;
  const auto lacks = [&](const Launch& launch) {
    return (launch.kind == Launch::Kind::send) == one.is_between_two() && launch.from == from && launch.to == to &&
           std::find(launch.missing.begin(), launch.missing.end(), rank) != launch.missing.end();
  };
  auto found = std::find_if(gathering_.begin(), gathering_.end(), [&](const auto& each) { return lacks(*each); });
  if (found == gathering_.end()) {
    gathering_.push_back(one.is_between_two() ? between_two(from, to) : of_all());
    found = gathering_.end() - 1;
  }
  std::shared_ptr<Launch> launch = *found;
  launch->calls.reserve(launch->calls.size() + own.size());  // before anything is changed
  std::erase(launch->missing, rank);
  if (launch->missing.empty()) gathering_.erase(found);
  for (const backend::Collective* const call : own) {
    launch->calls.push_back({.rank = rank - here_.first, .call = call});
  }
  return launch;
}

std::shared_ptr<Launch> Launches::of_all() const {
  auto launch = std::make_shared<Launch>();
  for (const std::size_t rank : here_) launch->missing.push_back(rank);
  launch->leader = here_.first;
  for (const std::size_t first : places_.leaders()) {
    if (!is_here(first)) launch->others.push_back(first);
  }
  return launch;
}

std::shared_ptr<Launch> Launches::between_two(std::size_t from, std::size_t to) const {
  auto launch = std::make_shared<Launch>();
  launch->kind = Launch::Kind::send;
  launch->from = from;
  launch->to = to;
  for (const std::size_t rank : {from, to}) (is_here(rank) ? launch->missing : launch->others).push_back(rank);
  launch->leader = launch->missing.back();
  return launch;
}

}}}  // namespace fanout::v0::detail
