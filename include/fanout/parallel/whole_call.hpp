// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include <fanout/call/async_calls.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/call/copied_chain.hpp>
#include <fanout/call/pending.hpp>
#include <fanout/measure/measured_shard.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/shared_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// An asynchronous call that one task makes as a whole, as a synchronous one: its shards may run again, or on other
/// devices than planned. `make(begun)` makes it and returns the result. `States` are what it takes from the thread that
/// asks for it: see CallerStates.
template <class Make, class States>
class WholeCall final : public PendingCall<std::invoke_result_t<Make&, const CallStart&>>, public Pooled {
  using Result = std::invoke_result_t<Make&, const CallStart&>;
  using Base = PendingCall<Result>;

 public:
  WholeCall(const void* original, const CallStart& begun, Make&& make)
      : Base(original, std::size_t{1}, begun.deadline), begun_(begun), make_(std::move(make)), chain_(current_call()) {}

  /// Queues the task at the main device.
  template <class PendingCallsOf>
  void post(PendingCallsOf& pending, const DeviceTable& devices, SharedMutex& mutex) {
    this->keep_in(pending.calls());
    this->calls()->post(*this, task_, devices, mutex, false);
  }

 private:
  void run_shard(std::size_t) noexcept override {
    const EnteredChain entered(chain_.innermost());
    const MeasuredShard before = std::exchange(measured_shard(), made_by_);
    try {
      [[maybe_unused]] const auto state = states_.enter();
      if constexpr (std::is_void_v<Result>) {
        make_(begun_);
      } else {
        result_.emplace(make_(begun_));
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
    measured_shard() = before;
  }

  /// The thread that makes the call reports its late shards.
  void tell_late() noexcept override {}

  Result take_result() override {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if constexpr (!std::is_void_v<Result>) {
      return std::move(*result_);  // NOLINT(bugprone-unchecked-optional-access): without it, there is a failure
    }
  }

  const Plan task_{{.rows = {}, .device = 0}};
  const CallStart begun_;
  Make make_;
  CopiedChain<CallScope> chain_;
  const States states_{};
  const MeasuredShard made_by_ = measured_shard();
  std::exception_ptr failure_;
  std::optional<std::conditional_t<std::is_void_v<Result>, bool, Result>> result_;
};

}}}  // namespace fanout::v0::detail
