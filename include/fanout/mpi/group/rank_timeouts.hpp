// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/timeout.hpp>
#include <fanout/mpi/group/rank_failures.hpp>
#include <fanout/mpi/group/rank_words.hpp>
#include <fanout/mpi/group/timed_outcome.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// What ranks throw if some of them are late.

/// The state of a rank that has failed so, or has not: see RankWords::failed.
FANOUT_INLINE std::uint64_t failed_by(const std::exception_ptr& exception);

inline Timeout timeout_of_ranks(const std::string& text, const std::set<std::size_t>& late) {
  SmallVector<std::size_t> ranks;
  for (const std::size_t rank : late) ranks.push_back(rank);
  return Timeout(text, std::move(ranks));
}

/// Throws what ranks failed of, see throw_failures_of_ranks(). But if all of them failed with a Timeout, a rank that
/// has not failed throws one too, which names them: those that were late, or that kept the others waiting.
[[noreturn]] FANOUT_INLINE void throw_failures(const std::vector<RankWords>& words,
                                               const std::vector<std::string>& texts, const std::exception_ptr& own);

/// Throws what rank `own` throws in a step that ranks gave up: see TimedOutcome. `name_of(i)` is the name of rank i,
/// and `call` the step. If a rank that gave up had failed, or one that came had by an exception, this throws what it
/// failed of.
template <class NameOf>
[[noreturn]] void throw_given_up(const TimedOutcome& outcome, std::size_t own, const NameOf& name_of,
                                 const std::string& call) {
  std::vector<RankWords> words = outcome.words;
  std::vector<std::string> failures(words.size());
  std::uint64_t failed = 0;
  std::set<std::size_t> missing;
  std::string by;
  for (const GivenUp& each : outcome.given_up) {
    failed |= each.failed;
    words[each.rank].failed = each.failed;
    failures[each.rank] = each.failure;
    missing.insert(each.missing.begin(), each.missing.end());
    by += (by.empty() ? "" : ", ") + name_of(each.rank);
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if ((words[i].failed & RankWords::has_failed) == 0 || !failures[i].empty()) continue;
    failed |= words[i].failed;
    failures[i] = outcome.failures[i];
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].failed == 0 || !failures[i].empty()) continue;
    failures[i] = message_as_text(name_of(i), "it had no memory to say why");
  }
  if (failed != 0) throw_failures(words, failures, nullptr);
  std::string late;
  for (const std::size_t rank : missing) {
    late += (late.empty() ? "" : ", ") + (rank == own ? "this rank" : name_of(rank));
  }
  const std::string time = "the deadline of " + Timeout::to_text(outcome.given_up.front().patience);
  const bool alone = outcome.given_up.front().rank == own;
  throw timeout_of_ranks(
      explain({.what = alone ? late + " had not arrived at " + time
                             : by + " gave up at " + time + ", since " + late + " had not arrived",
               .where = call,
               .advice = "a rank without Options::deadline counts as missing: set it on all ranks, or on none"}),
      missing);
}

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/rank_timeouts.ipp>
#endif
