// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <source_location>
#include <string>

namespace interleavings {

/// The kinds of operations on atomics.
enum class Operation { load, store, exchange, fetch, compare_exchange, park, unpark };

/// The line of an operation in a header.
using Place = std::source_location;

/// A weakened twin of a header: one of its operations does less than the header says. The machine weakens the operation
/// at run time, by its line, so the headers are compiled once.
struct Fault {
  enum class How {
    acq_rel,    ///< seq_cst becomes acq_rel; acquire for a load, release for a store
    relaxed,    ///< any order becomes relaxed
    skipped,    ///< a write is left out, and a read-modify-write is a relaxed load; a wake-up is left out
    torn,       ///< a read-modify-write becomes a load and a store, and other threads may run between them
    late,       ///< a write and the thread's next operation change places
    unchecked,  ///< a thread goes to sleep without comparing the word
  };

  std::string header;  ///< as in #include <fanout/...>; after find(), the file of the line: it or its .ipp
  std::string text;    ///< in one line of the header or of its .ipp; names the operation last
  How how;
  std::string scenario;  ///< the scenario that must find it
  int which = 1;         ///< the line with the text that is meant, if there is more than one
  int of = 1;            ///< so many lines have the text
  Operation operation{};
  unsigned line = 0;

  /// Finds the line of the text, the header's lines first. Returns an error, or an empty text.
  std::string find(const std::string& include);

  bool hits(Operation what, const Place& place) const;
};

const char* name_of(Fault::How how);

}  // namespace interleavings
