// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/call/call_scope.hpp>
#include <fanout/call/copied_chain.hpp>
#include <fanout/call/pending.hpp>
#include <fanout/dispatch/shard_runner.hpp>
#include <fanout/dispatch/shard_tasks.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/schedule/flow.hpp>
#include <fanout/schedule/flow_in_lists.hpp>
#include <fanout/schedule/pipeline_options.hpp>
#include <fanout/schedule/time_in_calls.hpp>
#include <fanout/stages/made.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// An asynchronous call of a pipeline: a PipelineCall, its arguments, and the scopes in which it is made.
template <class Call, class... Args>
class AsyncPipeline final : public PendingCall<typename Call::result_type>, public Pooled {
  using Result = typename Call::result_type;

 public:
  explicit AsyncPipeline(const void* original, Args&&... args)
      : PendingCall<Result>(original, 0), arguments_(std::forward<Args>(args)...), chain_(current_call()) {}

  /// Starts the call. If that fails, the call throws the error when its result is taken. If the replicas need the
  /// calls in order, makes the call before it returns.
  template <class Models>
  void begin(const Models& models, const PipelineOptions& options, TimeInCalls& time) noexcept {
    try {
      std::apply([&](const auto&... args) { call_.emplace(models, options, time, chain_.innermost(), args...); },
                 arguments_);
      made(call_).begin();
      if constexpr (Call::needs_order) {
        made(call_).run_flow();
      } else {
        start();
      }
    } catch (...) {
      failure_ = std::current_exception();
      lists_.reset();
      call_.reset();  // leaves the models
    }
  }

 private:
  /// Runs a step on the thread of its device.
  struct Body {
    AsyncPipeline* call;
    void operator()(std::size_t step) const noexcept { made(call->call_).run_step(step); }
  };

  void start() {
    Flow& flow = made(call_).flow();
    lists_.emplace(flow, *this, Call::stages);
    std::size_t stage = 0;
    made(call_).for_each_stage([&](auto& calls) { calls.make_room_for(made(lists_).entry(stage++)); });
    stage = 0;
    made(call_).for_each_stage([&](auto& calls) { calls.leave_to(made(lists_).entry(stage++)); });
    this->keep_in(*made(lists_).entry(0).calls());
    this->set_running(true);
    flow.start(runner_);
  }

  void run_shard(std::size_t) noexcept override {}
  void tell_late() noexcept override {}
  bool wait_for_tasks() noexcept override { return made(call_).flow().wait(); }

  Result take_result() override {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    return made(call_).end(nullptr);
  }

  const std::tuple<Args...> arguments_;
  const CopiedChain<CallScope> chain_;
  const Body body_{this};
  const ShardRunner runner_{body_};
  std::exception_ptr failure_;  // thrown when the call was started
  std::optional<Call> call_;
  std::optional<FlowInLists> lists_;
};

}}}  // namespace fanout::v0::detail
