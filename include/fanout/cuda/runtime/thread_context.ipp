// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/thread_context.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

void HeldContext::enter(GpuState& gpu) {
  if (pushed_ == nullptr) {
    push_context(gpu);
    pushed_ = &gpu;
  } else {
    thread_context.current = nullptr;  // unless the next line succeeds
    check(status_of_push(driver().set_context(gpu.context())), "cuCtxSetCurrent", gpu.index());
  }
  thread_context.current = &gpu;
}

}}}  // namespace fanout::v0::cuda::detail
