// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <fanout/mpi.hpp>
#include <support/timeout_of.hpp>

// Calls to which one rank is late: it waits for the others to give up. Deadlines of calls whose other ranks must be in
// time are made longer until they are.

namespace fanout_test {

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Waits until all ranks have called it.
inline void meet() { MPI_Barrier(MPI_COMM_WORLD); }

enum class Late { calls, returns, throws, loses_messages };

/// What the ranks have in common.
struct Together {
  std::size_t late;
  Late how;
  bool* has_met;  // of this rank: true after meet()
};

/// Returns the text of what `call(ranks, deadline)` throws on this rank. Calls it again, each time with new ranks,
/// until all ranks have reached the collective in time. `meet` is what the late rank waits for in the call.
template <class Call, class Meet = void (*)()>
std::string text_of_late_call(const Together& all, const Call& call, const Meet& meet = &fanout_test::meet) {
  for (std::chrono::milliseconds deadline{100}; deadline < std::chrono::seconds{20}; deadline *= 2) {
    const fanout::mpi::Ranks ranks{MPI_COMM_WORLD};
    const bool is_late = ranks.rank() == all.late;
    *all.has_met = false;
    fanout_test::meet();
    std::string text = "nothing thrown";
    try {
      const std::optional<fanout::Timeout> timeout = timeout_of([&] { call(ranks, deadline); });
      if (timeout) {
        text = timeout->what();
        CHECK(timeout->late().size() == 0);
        CHECK(std::count(timeout->missing().begin(), timeout->missing().end(), all.late) == 1);
      }
    } catch (const fanout::Error& error) {
      text = std::string("not late: ") + error.what();
    }
    if (all.how != Late::loses_messages && !(is_late && *all.has_met)) meet();
    int came = is_late || has(text, "had not come to a collective") ? 1 : 0;
    if (is_late && all.how != Late::loses_messages && !*all.has_met) came = 0;
    MPI_Allreduce(MPI_IN_PLACE, &came, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (came != 0) return text;
  }
  return "never came as far as the collective";
}

}  // namespace fanout_test
