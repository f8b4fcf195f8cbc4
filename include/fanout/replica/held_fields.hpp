// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/error.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/plan/batch_place.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/replica/combined_fields.hpp>
#include <fanout/sync/shared_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Takes a shared lock, which keeps out calls that change combined fields. A call inside the model's own `forward`
/// takes no lock: the outer call holds it.
class CombinedReader {
 public:
  CombinedReader(SharedMutex& mutex, const void* original) noexcept
      : mutex_(find_original(current_call(), original) == nullptr ? &mutex : nullptr) {
    if (mutex_ == nullptr) return;
    if (current_call() == nullptr) {
      mutex_->lock_shared();
    } else {
      mutex_->lock_shared_nested();
    }
  }
  CombinedReader(const CombinedReader&) = delete;
  CombinedReader& operator=(const CombinedReader&) = delete;
  ~CombinedReader() {
    if (mutex_ != nullptr) mutex_->unlock_shared();
  }

 private:
  SharedMutex* mutex_;
};

/// What one call holds of the combined fields of the replicas, as long as this lives. Without such fields, nothing. If
/// the call `changes` them (`forward` is not const), an exclusive lock, otherwise a shared one. Waits for the lock. A
/// call that changes fields calls combine() when all shards have ended without an exception. Otherwise the fields are
/// reset to those of the original.
template <class AnyReplicas, bool changes, bool has = has_combined_fields<typename AnyReplicas::model_type>>
class HeldFields {
 public:
  HeldFields(const AnyReplicas&, const Plan&) noexcept {}
  /// For fields that check_combined_fields() has refused, so that this is the only error.
  template <class Ranked>
  void combine(const BatchPlace&, Ranked&) noexcept {}
};

template <class AnyReplicas>
class HeldFields<AnyReplicas, false, true> {
 public:
  HeldFields(const AnyReplicas& replicas, const Plan&) noexcept
      : reads_(replicas.combined_mutex(), &replicas.original()) {}

 private:
  CombinedReader reads_;
};

/// Throws Error if the call is made inside the model's own `forward`.
template <class AnyReplicas>
  requires(check_combined_fields<typename AnyReplicas::model_type>())
class HeldFields<AnyReplicas, true, true> {
 public:
  HeldFields(const AnyReplicas& replicas, const Plan& plan) : alone_(gate_of(replicas)), call_(replicas, plan) {}
  template <class Ranked>
  void combine(const BatchPlace& batch, Ranked& ranked) {
    call_.combine(batch, ranked);
  }

 private:
  static SharedMutex& gate_of(const AnyReplicas& replicas) {
    if (find_original(current_call(), &replicas.original()) != nullptr) {
      throw Error(explain({.what = "a model with a non-const forward was called from inside its own forward",
                           .found = "fields that are combined after the outer call",
                           .advice = "make forward const, or call another model"}));
    }
    return replicas.combined_mutex();
  }

  ExclusiveLock alone_;
  CombiningCall<AnyReplicas> call_;
};

}}}  // namespace fanout::v0::detail
