// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace mpi {

/// Ranks have died, or can no longer be reached. Thrown on the ranks that are left, if RanksOptions::survive is set.
/// From then on, all exchanges of these Ranks throw it. Ranks::shrink() makes new ones.
class [[gnu::visibility("default")]] RankLost : public Error {
 public:
  explicit RankLost(std::vector<std::size_t> ranks) : Error(text(ranks)), ranks_(std::move(ranks)) {}

  /// The ranks that were lost, as far as this rank knows, in no order. Lives as long as this error.
  const std::vector<std::size_t>& ranks() const noexcept { return ranks_; }

 private:
  FANOUT_INLINE static std::string text(const std::vector<std::size_t>& ranks);

  std::vector<std::size_t> ranks_;
};

}}}  // namespace fanout::v0::mpi

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/rank_lost.ipp>
#endif
