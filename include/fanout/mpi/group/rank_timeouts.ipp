// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/rank_timeouts.hpp>

#include <set>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/timeout.hpp>

namespace fanout { inline namespace v0 { namespace detail {

inline Timeout timeout_of_ranks(const std::string& text, const std::set<std::size_t>& late) {
  SmallVector<std::size_t> ranks;
  for (const std::size_t rank : late) ranks.push_back(rank);
  return Timeout(text, std::move(ranks));
}

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

void throw_given_up(const GivenUp& how, const std::vector<RankWords>& words, std::size_t own,
                    const std::function<std::string(std::size_t)>& name_of, const std::string& call) {
  std::vector<std::string> texts(words.size());  // of exceptions
  std::set<std::size_t> late;                    // whose own shards were late
  std::size_t shards = 0;
  bool any_failed = false;
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    shards += words[i].shards;
    if (words[i].failed == 0) continue;
    const std::string& said = how.failures[i];
    const std::string text = said.empty() ? message_as_text(name_of(i), "it had no memory to say why") : said;
    if (words[i].failed == RankWords::was_late) late.insert(i);
    if (const std::vector<std::string> fields = fields_of(text); fields.size() == 3) {
      list += "\n  " + fields[0] + ": " + fields[2];
    }
    if ((words[i].failed & RankWords::has_failed) == 0) continue;
    texts[i] = text;
    any_failed = true;
  }
  if (any_failed) throw_failures_of_ranks(texts, nullptr, shards);
  std::string names;
  for (const std::size_t rank : how.missing) {
    names += (names.empty() ? "" : ", ") + (rank == own ? "this rank" : name_of(rank));
  }
  const std::string time = "the deadline of " + Timeout::to_text(how.patience);
  const std::string text = explain(
      {.what = how.by == own ? names + " had not arrived at " + time
                             : name_of(how.by) + " gave up at " + time + ", since " + names + " had not arrived",
       .where = call,
       .advice = "a rank without Options::deadline counts as missing: set it on all ranks, or on none"});
  if (late.empty()) late.insert(how.missing.begin(), how.missing.end());
  throw timeout_of_ranks(list.empty() ? text : text + "; ranks were late in it:" + list, late);
}

}}}  // namespace fanout::v0::detail
