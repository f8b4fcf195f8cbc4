// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fanout/base/duration.hpp>
#include <fanout/mpi/group/rank_words.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A rank that gave a step up.
struct GivenUp {
  std::size_t rank = 0;
  Duration patience;                 ///< its deadline
  std::vector<std::size_t> missing;  ///< ranks that had not arrived there
  std::uint64_t failed = 0;          ///< see RankWords; then `failure` says why
  std::string failure = {};
};

/// How one exchange ended: the same on all ranks, but for what each knows of the others.
struct TimedOutcome {
  std::vector<RankWords> words;       ///< of all ranks; if ranks gave up, those that are not known are zero
  std::vector<std::string> failures;  ///< why each rank has failed, if it has come; else empty
  std::vector<GivenUp> given_up;      ///< the ranks that gave up first, as far as is known here
};

}}}  // namespace fanout::v0::detail
