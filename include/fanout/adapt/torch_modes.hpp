// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <ATen/ThreadLocalState.h>

namespace fanout { inline namespace v0 {

/// What libtorch keeps for each thread (NoGradGuard, InferenceMode, autocast, hooks of saved tensors), as the thread has
/// it that makes this. A model of your own that calls libtorch takes it along with
/// `static fanout::TorchModes caller_state() { return {}; }`.
class TorchModes {
 public:
  /// This thread has the same for as long as what is returned lives.
  [[nodiscard]] at::ThreadLocalStateGuard enter() const { return at::ThreadLocalStateGuard(state_); }

 private:
  at::ThreadLocalState state_;
};

}}  // namespace fanout::v0
