// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lets each allocation of a call fail once.

#include <cstddef>
#include <exception>
#include <functional>
#include <string>

namespace random_programs {

struct Sweep {
  std::size_t failed = 0;  ///< so many allocations
  std::string wrong = {};  ///< empty if all went well
};

/// Calls `call()` again and again: the k-th time its k-th allocation fails, on whatever thread, until none is left to
/// fail. Each time the call must throw what tells of memory alone, or return in spite of it, and leave as many
/// allocations as there were when `prepare()` had returned. Then `works_again()` is called, which says what is wrong.
/// What `call` does in Spared does not fail.
Sweep fail_each_allocation(const std::function<void()>& prepare, const std::function<void()>& call,
                           const std::function<std::string()>& works_again);

std::string message_of(const std::exception_ptr& thrown);

/// While it lives, the process says what runs if it crashes, or ends after 100 s.
class Running {
 public:
  explicit Running(const std::string& what);
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running();
};

}  // namespace random_programs
