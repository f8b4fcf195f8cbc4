// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/call/call_order.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A model's side of its asynchronous calls, an AsyncCalls: nothing until there is one. Waits for all when it is destroyed, which is
/// before anything goes that they use.
template <class Calls>
class PendingCalls {
 public:
  /// Of a model with that original and so many replicas.
  PendingCalls(const void* original, std::size_t replicas) noexcept : original_(original), replicas_(replicas) {}
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;
  ~PendingCalls() {
    if (Calls* calls = list()) {
      calls->finish();
      calls->release();
    }
  }

  /// The list of calls. Throws std::bad_alloc when it is asked for first.
  Calls& calls() {
    Calls* known = list();
    if (known != nullptr) return *known;
    auto* made = new Calls(replicas_);
    if (list_.compare_exchange_strong(known, made, MemoryOrder::acq_rel)) return *made;
    made->release();
    return *known;
  }

  /// Whether a call that this thread makes has its turn on each replica. One from inside the model's own forward has
  /// not: it may have to end before that.
  bool is_in_order(CallOrder order) {
    if (order == CallOrder::any || find_original(current_call(), original_) != nullptr) return false;
    return order == CallOrder::changes || calls().has_ordered();
  }

  /// Lets the calls that this thread made go before one that is not asynchronous.
  void wait_for_earlier(CallOrder order) {
    if (order == CallOrder::any) return;
    Calls* const calls = list();
    if (calls == nullptr || !calls->has_ordered()) return;
    if (find_original(current_call(), original_) == nullptr) calls->wait_for_ordered();
  }

  /// Runs on this thread what no device has started.
  void help() noexcept {
    if (Calls* calls = list()) calls->help();
  }

 private:
  Calls* list() const noexcept { return list_.load(MemoryOrder::acquire); }

  const void* original_;
  std::size_t replicas_;
  Atomic<Calls*> list_{nullptr};
};

}}}  // namespace fanout::v0::detail
