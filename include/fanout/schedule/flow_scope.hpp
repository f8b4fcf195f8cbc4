// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>

#include <fanout/base/duration.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The scope in which the steps of a flow run. It has a deadline, and the first exception of a step. A step that begins
/// or ends after the deadline throws Timeout. Steps that begin after an exception are left out.
class FlowScope {
 public:
  /// The steps run in a scope inside of `outer`, which it borrows. The deadline counts from now on.
  FlowScope(const Duration& deadline, const CallScope* outer) noexcept
      : deadline_(deadline),
        outer_(outer),
        limited_{.caller = outer, .stop_at = deadline == Duration::forever() ? Clock::never : Clock::after(deadline)} {}
  FlowScope(const FlowScope&) = delete;
  FlowScope& operator=(const FlowScope&) = delete;

  /// Calls `f()` in the scope, unless a step has failed before. Notes what it throws.
  template <class F>
  void run(std::size_t step, const F& f) noexcept {
    if (failed_.load(MemoryOrder::acquire)) return;
    try {
      check_deadline();
      const EnteredScope entered(limited_.stop_at == Clock::never ? outer_ : &limited_);
      f();
      check_deadline();
    } catch (...) {
      if (failed_.exchange(true, MemoryOrder::acq_rel)) return;
      step_ = step;
      exception_ = std::current_exception();
    }
  }

  // For use when all steps have ended:

  /// Null if none has failed.
  const std::exception_ptr& failure() const noexcept { return exception_; }
  std::size_t failed_step() const noexcept { return step_; }

 private:
  void check_deadline() const {
    if (limited_.stop_at != Clock::never && Clock::now() >= limited_.stop_at) refuse_late();
  }
  [[noreturn, gnu::cold]] FANOUT_INLINE void refuse_late() const;

  const Duration deadline_;
  const CallScope* const outer_;
  const CallScope limited_;  // with the deadline, if there is one
  Atomic<bool> failed_{false};
  std::size_t step_ = 0;
  std::exception_ptr exception_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/schedule/flow_scope.ipp>
#endif
