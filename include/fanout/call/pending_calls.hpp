// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/call/async_calls.hpp>
#include <fanout/call/call_order.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A model's asynchronous calls: an AsyncCalls that is made at first use. The destructor waits for all calls, so a
/// model must destroy this before anything that the calls use.
class PendingCalls {
 public:
  /// For a model with this original and this number of replicas.
  PendingCalls(const void* original, std::size_t replicas) noexcept : original_(original), replicas_(replicas) {}
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;
  ~PendingCalls() {
    if (AsyncCalls* calls = list()) calls->tell(&AsyncPart::end);
  }

  /// The list of calls. Throws std::bad_alloc if the first use cannot allocate it.
  AsyncCalls& calls() {
    AsyncCalls* known = list();
    if (known != nullptr) return *known;
    auto* made = new AsyncCalls(replicas_);
    if (list_.compare_exchange_strong(known, made, MemoryOrder::acq_rel)) return *made;
    made->release();
    return *known;
  }

  /// True if a call made by this thread must wait for its turn on each replica. A call from inside the model's own
  /// `forward` must not: that `forward` may wait for it.
  bool is_in_order(CallOrder order) {
    if (order == CallOrder::any || find_original(current_call(), original_) != nullptr) return false;
    return order == CallOrder::changes || calls().has_ordered();
  }

  /// Before a synchronous call: waits for the ordered asynchronous calls made so far, unless this runs inside the
  /// model's own `forward`.
  void wait_for_earlier(CallOrder order) {
    if (order == CallOrder::any) return;
    AsyncCalls* const calls = list();
    if (calls == nullptr || !calls->has_ordered()) return;
    if (find_original(current_call(), original_) == nullptr) calls->tell(&AsyncPart::wait_for_ordered);
  }

  /// Runs the shards that no device has started on this thread. Does not wait for the others.
  void help() noexcept {
    if (AsyncCalls* calls = list()) calls->tell(&AsyncPart::help);
  }

 private:
  AsyncCalls* list() const noexcept { return list_.load(MemoryOrder::acquire); }

  const void* original_;
  std::size_t replicas_;
  Atomic<AsyncCalls*> list_{nullptr};
};

}}}  // namespace fanout::v0::detail
