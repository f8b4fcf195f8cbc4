// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/exchange.hpp>
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
  backend::Completion of(StreamRef stream) {
    Mark* mark = take();
    try {
      stream.record(mark->event);
    } catch (...) {
      give(*mark);
      throw;
    }
    return {&Completions::finish, mark};
  }

  /// The number of completions that nobody has waited for yet.
  std::size_t pending() const noexcept { return pending_.load(fanout::detail::MemoryOrder::relaxed); }

 private:
  struct Mark {
    Completions* home;
    Mark* next = nullptr;
    Event event{};
  };

  static void finish(void* what) {
    auto* mark = static_cast<Mark*>(what);
    struct Given {
      Mark* mark;
      ~Given() { mark->home->give(*mark); }
    } const given{mark};
    mark->event.synchronize();
  }

  Mark* take() {
    pending_.fetch_add(1, fanout::detail::MemoryOrder::relaxed);
    {
      const fanout::detail::ForkSafeLock taking(mutex_);
      if (free_ != nullptr) return fanout::detail::exchange(free_, free_->next);
    }
    return new Mark{this};
  }
  void give(Mark& mark) noexcept {
    pending_.fetch_sub(1, fanout::detail::MemoryOrder::relaxed);
    const fanout::detail::ForkSafeLock giving(mutex_);
    mark.next = fanout::detail::exchange(free_, &mark);
  }

  fanout::detail::ForkSafeMutex mutex_;
  Mark* free_ = nullptr;
  fanout::detail::Atomic<std::size_t> pending_{0};
};

}}}  // namespace fanout::v0::cuda::detail
