// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/call/async_calls.hpp>
#include <fanout/dispatch/shard_tasks.hpp>
#include <fanout/schedule/flow.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A flow among the pending calls of the models of its stages. So update() of each model, and its destructor, run steps
/// that no device has started, and wait for the flow.
class FlowInLists final : public FlowWatcher {
 public:
  /// One of these for each model.
  class Entry final : public AsyncCall {
   public:
    Entry() : AsyncCall(0) {}
    ~Entry() override {
      if (calls() != nullptr) calls()->release();
    }
    void shows(Flow& flow) noexcept { flow_ = &flow; }

   private:
    void run_shard(std::size_t) noexcept override {}
    void tell_late() noexcept override {}
    ShardTask* take_back_task() noexcept override { return flow_->take_back(); }
    bool wait_for_tasks() noexcept override { return flow_->wait(); }

    Flow* flow_ = nullptr;
  };

  /// `call` is the one that the user waits for.
  FlowInLists(Flow& flow, AsyncCall& call, std::size_t models) : call_(call), entries_(models) {
    for (Entry& entry : entries_) entry.shows(flow);
    flow.watched_by(*this);
  }
  FlowInLists(const FlowInLists&) = delete;
  FlowInLists& operator=(const FlowInLists&) = delete;

  /// To be listed in the calls of the i-th model before the flow starts.
  Entry& entry(std::size_t i) noexcept { return entries_[i]; }

 private:
  FANOUT_INLINE void step_was_posted() noexcept override;
  FANOUT_INLINE void flow_has_ended() noexcept override;

  AsyncCall& call_;
  InlineArray<Entry> entries_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/schedule/flow_in_lists.ipp>
#endif
