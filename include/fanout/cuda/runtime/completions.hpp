// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Makes Completions of the work in a GPU's stream. Reuses their events, since making one costs more than recording it.
/// Thread-safe.
class Completions {
 public:
  Completions() = default;
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// A Completion of all work that is in the stream now. Throws CudaError.
  FANOUT_INLINE backend::Completion of(StreamRef stream);

  /// The number of completions that nobody has waited for yet.
  std::size_t pending() const noexcept { return pending_.load(fanout::detail::MemoryOrder::relaxed); }

 private:
  struct Mark {
    Completions* home;
    Mark* next = nullptr;
    Event event{};
  };

  FANOUT_INLINE static void finish(void* what);

  FANOUT_INLINE Mark* take();
  void give(Mark& mark) noexcept {
    pending_.fetch_sub(1, fanout::detail::MemoryOrder::relaxed);
    const fanout::detail::ForkSafeLock giving(mutex_);
    mark.next = std::exchange(free_, &mark);
  }

  fanout::detail::ForkSafeMutex mutex_;
  Mark* free_ = nullptr;
  fanout::detail::Atomic<std::size_t> pending_{0};
};

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/completions.ipp>
#endif
