// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/driver.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Pushes a GPU's context on the thread's context stack. Throws DeviceLost and CudaError.
inline void push_context(GpuState& gpu) {
  check(status_of_push(driver().push_context(gpu.context())), "cuCtxPushCurrent", gpu.index());
}

/// Undoes it. Does nothing in the child of a fork, where CUDA must not be called.
inline void pop_context(GpuState& gpu) noexcept {
  if (forked_after_use()) return;
  ContextHandle popped = nullptr;
  note(status_of(only_driver.load(fanout::detail::MemoryOrder::acquire)->pop_context(&popped)), gpu.index());
}

class HeldContext;

/// What fanout has made of the thread's context stack.
struct ThreadContext {
  const GpuState* current = nullptr;  ///< whose context fanout made the current one; null: none, or it is unknown
  HeldContext* held = nullptr;        ///< null: guards push and pop

  /// True if the thread has a current context.
  bool has_any() const noexcept;
};

[[gnu::visibility("default")]] inline thread_local constinit ThreadContext thread_context{};

/// While this lives, the thread's current device may change: guards leave their GPU's context there for the next one,
/// which replaces it if it needs another. Then the thread is as before. Costs nothing if no guard is used. A call of a
/// model has one on the thread that makes it, so that this thread pushes and pops once.
class HeldContext {
 public:
  HeldContext() noexcept : before_(thread_context) { thread_context.held = this; }
  HeldContext(const HeldContext&) = delete;
  HeldContext& operator=(const HeldContext&) = delete;
  ~HeldContext() {
    thread_context = before_;
    if (pushed_ != nullptr) pop_context(*pushed_);
  }

  /// Makes the GPU's context the current one, until another one is entered. Throws DeviceLost and CudaError.
  FANOUT_INLINE void enter(GpuState& gpu);

  /// True if a guard has pushed a context, which is there still.
  bool has_pushed() const noexcept { return pushed_ != nullptr; }

 private:
  const ThreadContext before_;
  GpuState* pushed_ = nullptr;
};

inline bool ThreadContext::has_any() const noexcept {
  return current != nullptr || (held != nullptr && held->has_pushed());
}

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/thread_context.ipp>
#endif
