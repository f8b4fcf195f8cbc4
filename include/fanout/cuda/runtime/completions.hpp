// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/parcel.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Makes Completions of the work in a device's stream. Reuses their events, since making one costs more than recording
/// it. Records the event of the newest one only when more work comes: until then, who waits for the stream waits for no
/// other work. Thread-safe.
class Completions {
 public:
  Completions() = default;
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// A Completion of all work that is in the stream now: always the same one. It delivers the parcel, if there is one,
  /// and releases it, also if this throws. Throws DeviceLost and CudaError.
  FANOUT_INLINE backend::Completion of(StreamRef stream, Parcel* parcel = nullptr);

  /// Call this before more work is put into the stream.
  void more_work_comes() noexcept {
    if (newest_.load(fanout::detail::MemoryOrder::acquire) != nullptr) record_newest();
  }

  /// The number of completions that nobody has waited for yet.
  std::size_t pending() const noexcept { return pending_.load(fanout::detail::MemoryOrder::relaxed); }

 private:
  struct Mark {
    Completions* home;
    Mark* next = nullptr;
    Event event{};
    bool is_recorded = false;
    StreamRef stream{nullptr, -1};
    Parcel* parcel = nullptr;
  };

  FANOUT_INLINE static void finish(void* what);
  /// Waits first: the copies in the stream use the parcel.
  FANOUT_INLINE static void release_after(StreamRef stream, Parcel& parcel) noexcept;
  FANOUT_INLINE bool is_recorded(Mark& mark) noexcept;

  FANOUT_INLINE void record_newest() noexcept;
  FANOUT_INLINE Mark* take();
  void give(Mark& mark) noexcept {
    pending_.fetch_sub(1, fanout::detail::MemoryOrder::relaxed);
    const fanout::detail::ForkSafeLock giving(mutex_);
    mark.next = std::exchange(free_, &mark);
  }

  fanout::detail::ForkSafeMutex mutex_;  // guards free_, and is_recorded of the newest
  Mark* free_ = nullptr;
  fanout::detail::Atomic<Mark*> newest_{nullptr};  // whose event is not recorded yet
  fanout::detail::Atomic<std::size_t> pending_{0};
};

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/completions.ipp>
#endif
