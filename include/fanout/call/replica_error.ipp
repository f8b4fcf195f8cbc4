// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/replica_error.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/text.hpp>
#include <fanout/base/type_info.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Adds a text whose further lines are indented: it may be that of another ReplicaError.
inline void add_indented(Text& text, std::string_view part) {
  for (std::size_t end = part.find('\n'); end != std::string_view::npos; end = part.find('\n')) {
    text << part.substr(0, end + 1) << "  ";
    part.remove_prefix(end + 1);
  }
  text << part;
}

inline std::string failures_text(const char* step, const std::vector<Failure>& failures, std::size_t replicas,
                                 bool has_rows, const std::string& note) {
  Text text;
  text << step << " failed on " << failures.size() << " of " << replicas << (replicas == 1 ? " replica" : " replicas");
  for (const Failure& failure : failures) {
    Text where;
    where << " in replica " << failure.shard << " on device " << failure.device;
    if (!failure.process.empty()) where << " of " << failure.process;
    if (has_rows) where << ", rows " << failure.rows;
    try {
      std::rethrow_exception(failure.exception);
    } catch (const std::exception& e) {
      text << "\n  Caught " << class_name(e) << where << ": ";
      add_indented(text, e.what());
    } catch (...) {
      text << "\n  Caught an exception that is no std::exception" << where;
    }
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
