// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>

#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The first exception of the steps of a flow. Steps that begin after it are left out.
class FirstFailure {
 public:
  /// Calls `f()`, unless a step has failed before. Notes what it throws.
  template <class F>
  void run(std::size_t step, const F& f) noexcept {
    if (failed_.load(MemoryOrder::acquire)) return;
    try {
      f();
    } catch (...) {
      if (failed_.exchange(true, MemoryOrder::acq_rel)) return;
      step_ = step;
      exception_ = std::current_exception();
    }
  }

  // For use when all steps have ended:

  /// Null if none has failed.
  const std::exception_ptr& exception() const noexcept { return exception_; }
  std::size_t step() const noexcept { return step_; }

 private:
  Atomic<bool> failed_{false};
  std::size_t step_ = 0;
  std::exception_ptr exception_;
};

}}}  // namespace fanout::v0::detail
