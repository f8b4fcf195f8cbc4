// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "fault.hpp"
#include "machine.hpp"

namespace interleavings {

/// One use of a protocol. The body builds all its objects and calls run() and check().
struct Scenario {
  const char* name;
  void (*body)();
  Limits limits{};
};

/// A protocol of the library, its scenarios, and the faults that they must find.
struct Protocol {
  const char* name;
  std::vector<Scenario> scenarios;
  std::vector<Fault> faults;
};

Protocol fork_safe_mutex();
Protocol ticket_lock();
Protocol shared_mutex();
Protocol task();
Protocol task_queue();
Protocol handoff_slot();
Protocol worker();

}  // namespace interleavings
