// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/rank_lost.hpp>

namespace fanout { inline namespace v0 { namespace mpi {

std::string RankLost::text(const std::vector<std::size_t>& ranks) {
  std::string list;
  for (const std::size_t rank : ranks) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  return explain({.what = ranks.empty() ? std::string("a rank was lost that is not known here")
                                        : (ranks.size() == 1 ? "rank " : "ranks ") + list +
                                              (ranks.size() == 1 ? " was lost" : " were lost"),
                  .advice = "call shrink() on all others, and make new models with what it returns"});
}

}}}  // namespace fanout::v0::mpi
