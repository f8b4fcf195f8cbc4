// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/rank_timeouts.hpp>

namespace fanout { inline namespace v0 { namespace detail {

std::uint64_t failed_by(const std::exception_ptr& exception) {
  if (exception == nullptr) return 0;
  try {
    std::rethrow_exception(exception);
  } catch (const Timeout& timeout) {
    return timeout.missing().size() == 0 ? RankWords::was_late : RankWords::kept_waiting;
  } catch (...) {
    return RankWords::has_failed;
  }
}

void throw_failures(const std::vector<RankWords>& words, const std::vector<std::string>& texts,
                    const std::exception_ptr& own) {
  std::size_t shards = 0;
  std::uint64_t failed = 0;
  for (const RankWords& each : words) {
    shards += each.shards;
    failed |= each.failed;
  }
  if (own != nullptr || (failed & RankWords::has_failed) != 0) throw_failures_of_ranks(texts, own, shards);
  std::set<std::size_t> late;
  std::string list;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    // If every rank that failed had waited for others, then the others are late.
    const bool kept_others_waiting = failed == RankWords::kept_waiting && words[i].failed == 0;
    if (words[i].failed == RankWords::was_late || kept_others_waiting) late.insert(i);
    const std::vector<std::string> fields = fields_of(texts[i]);
    if (fields.size() >= 3) list += "\n  " + fields[0] + ": " + fields[2];
  }
  throw timeout_of_ranks("ranks were late in a call of all ranks:" + list, late);
}

}}}  // namespace fanout::v0::detail
