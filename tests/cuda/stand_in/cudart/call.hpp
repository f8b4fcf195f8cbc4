// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every function of the runtime does first and last.
#pragma once

#include <string>
#include <utility>

#include "state.hpp"

namespace stand_in {

enum Needs : unsigned {
  nothing = 0,
  devices = 1,            ///< fails where there is no driver or no device
  context = 2 | devices,  ///< makes the thread's device current first
  releasing = 4,          ///< does its work even where a failure is wanted
  only_asks = 8,          ///< about errors: never fails, and is not counted as a call that could
  unsafe = 32,            ///< fails where it would disturb a capture
  driver = 16             ///< a function of the driver: leaves the runtime's last error alone
};

/// Inside one call of the runtime: quiet, the books locked.
class Call {
 public:
  Call(const char* name, unsigned needs);
  ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool refused() const { return refused_; }
  int finish(int result);
  /// Sticky errors of this device end the call; from the start it is the current one.
  void on(int device) { device_ = device; }
  void wrong(const std::string& what) { misuse(name, what); }

  const char* const name;

 private:
  int unready();

  Quiet quiet_;

 public:
  std::unique_lock<std::mutex> lock;

 private:
  unsigned needs_;
  bool refused_ = false;
  int wanted_ = 0;
  int device_ = -1;
};

/// One function of the runtime: `body(Call&)` gives its result.
template <class Body>
cudaError_t call(const char* name, unsigned needs, Body body) {
  Call entry(name, needs);
  return static_cast<cudaError_t>(entry.finish(entry.refused() ? 0 : static_cast<int>(body(entry))));
}

}  // namespace stand_in
