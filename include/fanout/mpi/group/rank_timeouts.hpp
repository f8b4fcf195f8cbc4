// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/mpi/group/rank_failures.hpp>
#include <fanout/mpi/group/rank_words.hpp>
#include <fanout/mpi/group/timed_exchange.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// What ranks throw if some of them are late.

/// The state of a rank that has failed so, or has not: see RankWords::failed.
FANOUT_INLINE std::uint64_t failed_by(const std::exception_ptr& exception);

/// Throws what ranks failed of, see throw_failures_of_ranks(). But if all of them failed with a Timeout, a rank that
/// has not failed throws one too, which names them: those that were late, or that kept the others waiting.
[[noreturn]] FANOUT_INLINE void throw_failures(const std::vector<RankWords>& words,
                                               const std::vector<std::string>& texts, const std::exception_ptr& own);

/// Throws what rank `own` throws in a step that ranks gave up: what ranks failed of, or else a Timeout. `words`: of all
/// ranks, as far as known. `name_of(i)` is the name of rank i, and `call` the step.
[[noreturn]] FANOUT_INLINE void throw_given_up(const GivenUp& how, const std::vector<RankWords>& words, std::size_t own,
                                               const std::function<std::string(std::size_t)>& name_of,
                                               const std::string& call);

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/rank_timeouts.ipp>
#endif
