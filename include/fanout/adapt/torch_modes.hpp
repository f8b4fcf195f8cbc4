// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <ATen/ThreadLocalState.h>

namespace fanout { inline namespace v0 {

/// The thread-local state of libtorch (NoGradGuard, InferenceMode, autocast, hooks of saved tensors) of the thread that
/// constructs this. A model of your own that calls libtorch takes it along with
/// `static fanout::TorchModes caller_state() { return {}; }`.
class TorchModes {
 public:
  /// Sets this state on the calling thread until the result is destroyed, which restores the thread's own.
  [[nodiscard]] at::ThreadLocalStateGuard enter() const { return at::ThreadLocalStateGuard(state_); }

 private:
  at::ThreadLocalState state_;
};

}}  // namespace fanout::v0
