// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include <fanout/base/inline_array.hpp>
#include <fanout/base/slot.hpp>
#include <fanout/call/call_order.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/device/device.hpp>
#include <fanout/dispatch/fork_join.hpp>
#include <fanout/model/factory.hpp>
#include <fanout/model/forward.hpp>
#include <fanout/model/unforwardable.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/replica/combined_fields.hpp>
#include <fanout/replica/factory_error.hpp>
#include <fanout/replica/replica.hpp>
#include <fanout/sync/shared_mutex.hpp>

namespace fanout { inline namespace v0 {

/// A model that a factory made for one device. Calls with a const `forward` run on it at the same time. A call whose
/// `forward` is not const, or of a model with PerReplica fields, holds it exclusively.
template <class F, Device D>
class Replica<Factory<F>, D> {
 public:
  using model_type = detail::made_model_t<F, D>;

  Replica(const detail::Original<Factory<F>>& original, const D& device) : original_(&original), device_(device) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;
  ~Replica() {
    if (!model_.filled()) return;  // the device may be the reason, so it is not entered again
    [[maybe_unused]] const auto entered = device_.enter();
    model_.clear();
  }

  const D& device() const noexcept { return device_; }

  /// The model that `forward` runs on. Must not be read while a call runs whose `forward` is not const.
  const model_type& model() const noexcept { return model_.value(); }

  /// Makes the model on this thread, with the device entered, and waits for the device. Must be called first, and once.
  void make_model(const F& make) const {
    [[maybe_unused]] const auto entered = device_.enter();
    model_.fill([&]() -> decltype(auto) { return detail::make_model(make, device_); });
    device_.synchronize();
  }

  template <class Ctx, class... A>
  static constexpr detail::CallOrder order =
      ConstForward<model_type, Ctx, A...> && !detail::has_own_fields<model_type> ? detail::CallOrder::after_changes
                                                                                 : detail::CallOrder::changes;

  /// Runs `forward` for one shard on this thread, with the device entered. Throws Error if it would wait for itself: if
  /// it runs inside a `forward` of the same model, and one of the two is not const. Returns a value, also if `forward`
  /// returns a reference.
  template <class Ctx, class... A>
  auto run(const detail::CallScope* caller, Ctx& ctx, A&&... args) const {
    if constexpr (ConstForward<model_type, Ctx, A...> && !detail::has_own_fields<model_type>) {
      if (detail::holds_replica(caller, original_)) detail::refuse_recursion(device_);
      const detail::SharedLock together(mutex_, detail::is_inside_call(caller));
      const detail::CallScope scope{.caller = caller, .original = original_};
      const detail::EnteredScope entered(scope);
      return detail::call_forward(std::as_const(model_.value()), ctx, std::forward<A>(args)...);
    } else if constexpr (Forwardable<model_type, Ctx, A...>) {
      if (detail::find_original(caller, original_) != nullptr) detail::refuse_recursion(device_);
      const detail::ExclusiveLock alone(mutex_);
      const detail::CallScope scope{.caller = caller, .original = original_, .busy = true};
      const detail::EnteredScope entered(scope);
      if constexpr (ConstForward<model_type, Ctx, A...>) {
        return detail::call_forward(std::as_const(model_.value()), ctx, std::forward<A>(args)...);
      } else {
        static_assert(!detail::has_combined_fields<model_type>,
                      "fanout: fields of models that a factory makes are not combined after a call, since there is no "
                      "original that could hold the result; give the model itself, or return psum(x), pmean(x)");
        return detail::call_forward(model_.value(), ctx, std::forward<A>(args)...);
      }
    } else {
      return detail::refuse_unforwardable<model_type, Ctx, A...>();
    }
  }

 private:
  const detail::Original<Factory<F>>* original_;
  D device_;
  mutable detail::SharedMutex mutex_;  // guards what follows
  mutable detail::Slot<model_type> model_;
};

namespace detail {

/// Makes the models of all replicas at the same time, each for its device. After all have ended, throws FactoryError if
/// one failed.
template <class F, class Replicas>
void make_models(const F& make, const Replicas& replicas) {
  // This model may be made inside a call of another model, which `make` may call, too.
  const CallScope scope{.caller = current_call(), .original = &replicas.original()};
  InlineArray<std::exception_ptr> thrown(replicas.size());
  run_shards(EvenSplit{}(0, replicas.size()), replicas.table(), [&](std::size_t i) noexcept {
    const EnteredScope entered(scope);
    try {
      replicas.visit(i, [&make](const auto& replica) { replica.make_model(make); });
    } catch (...) {
      thrown[i] = std::current_exception();
    }
  });
  std::vector<Failure> failures;
  for (std::size_t i = 0; i < thrown.size(); ++i) {
    if (thrown[i] == nullptr) continue;
    failures.push_back({.shard = i, .device = replicas.devices().ids()[i], .rows = {}, .exception = thrown[i]});
  }
  if (!failures.empty()) throw FactoryError(std::move(failures), replicas.size());
}

}  // namespace detail
}}  // namespace fanout::v0
