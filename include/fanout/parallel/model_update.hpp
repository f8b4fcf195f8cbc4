// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <fanout/base/requirements.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/model/original.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/shared_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A function that update() can call.
template <class F, class M>
concept ChangesOriginal = requires(F&& change, Original<M>& original) {
  static_cast<F&&>(change)(original.model);
};

template <class M, class F, class R>
void take_copy(R (F::*)(M));
template <class M, class F, class R>
void take_copy(R (F::*)(M) const);

/// A function that takes the model by value, so that its changes would be lost.
template <class F, class M>
concept ChangesCopy = requires {
  detail::take_copy<M>(&std::remove_cvref_t<F>::operator());
};

/// Keeps calls out while the original is changed. Then increases its version.
template <class State>
class ModelUpdate {
 public:
  explicit ModelUpdate(State& state)
      : state_(state),
        scope_{.caller = current_call(), .original = &state.original, .updating = true},
        entered_(scope_),
        closed_(state.mutex, [&state]() noexcept { state.pending.help(); }) {
    // Calls have ended, but their work may still run on the devices, and read what `f` changes.
    for (std::size_t i = 0; i < state.replicas.size(); ++i) {
      state.replicas.devices().visit(i, [](const auto& device) { device.synchronize(); });
    }
  }
  ModelUpdate(const ModelUpdate&) = delete;
  ModelUpdate& operator=(const ModelUpdate&) = delete;
  ~ModelUpdate() {
    try {
      settle_model(state_.original.model, state_.replicas.devices());
    } catch (...) {  // a device that failed reports that at its next use
    }
    state_.original.version.fetch_add(1, MemoryOrder::release);
  }

 private:
  State& state_;
  CallScope scope_;
  EnteredScope entered_;
  ExclusiveLock closed_;  // last, so that it unlocks first, after the version has changed
};

}}}  // namespace fanout::v0::detail
