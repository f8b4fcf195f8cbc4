// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/replica_error.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/caught_text.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

inline std::string failures_text(const char* step, const std::vector<Failure>& failures, std::size_t replicas,
                                 bool has_rows, const std::string& note) {
  Text text;
  text << step << " failed on " << failures.size() << " of " << replicas << (replicas == 1 ? " replica" : " replicas");
  for (const Failure& failure : failures) {
    Text where;
    where << " in replica " << failure.shard << " on device " << failure.device;
    if (!failure.process.empty()) where << " of " << failure.process;
    if (has_rows) where << ", rows " << failure.rows;
    add_caught(text, failure.exception, where);
  }
  if (!note.empty()) text << "\n  " << note;
  return text;
}

}  // namespace detail

ReplicaError::ReplicaError(const char* step, std::vector<Failure> failures, std::size_t replicas, bool has_rows,
                           const std::string& note)
    : Error(detail::failures_text(step, failures, replicas, has_rows, note)),
      failures_(std::move(failures)),
      note_(note) {}

}}  // namespace fanout::v0
