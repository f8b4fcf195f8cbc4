// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/device_guard.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

bool enter_gpu(GpuState& gpu) {
  if (thread_context.current == &gpu) return false;
  if (thread_context.held != nullptr) {
    thread_context.held->enter(gpu);
    return false;
  }
  push_context(gpu);
  thread_context.current = &gpu;
  return true;
}

QuietGuard::QuietGuard(GpuState& gpu) noexcept {
  if (gpu.known_context() == nullptr) return;
  // If the context is not entered, the caller's memory is not released, now or later. So it is tried again.
  for (int attempt = 0; attempt < 2 && !entered_ && gpu.usable(); ++attempt) {
    try {
      entered_.emplace(gpu);
    } catch (...) {  // noted
    }
  }
}

}}}}  // namespace fanout::v0::cuda::detail
