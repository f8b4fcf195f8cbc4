// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <pthread.h>

#include <fanout/base/error.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/worker/thread.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Makes the values `load(0)`, `load(1)`, ... `load(count - 1)` on threads of its own, and gives them out in this
/// order. `load` is called by several threads at once. Only one thread at a time may call next(). Without threads,
/// next() makes the values itself.
///
/// The threads start at the first next(), and have ended when the destructor returns. It waits for values in work.
template <class Load>
class Prefetcher {
 public:
  using Value = std::remove_cvref_t<std::invoke_result_t<const Load&, std::size_t>>;

  /// At most `ahead` values are ready or in work.
  Prefetcher(Load load, std::size_t count, std::size_t threads, std::size_t ahead)
      : load_(std::move(load)),
        count_(count),
        wanted_(least(threads, ahead, count)),
        slots_(wanted_ == 0 ? 0 : least(ahead, count)) {}
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher() {
    if (threads_.empty()) return;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    for (const pthread_t thread : threads_) ::pthread_join(thread, nullptr);
  }

  /// True in the child of a fork, which has none of the threads. Then the prefetcher must not be used or destroyed.
  bool is_lost() const noexcept { return !threads_.empty() && born_ != fork_epoch(); }

  /// The next value; none after the last. Waits for it. Throws what `load` threw for it; then the next call returns the
  /// value after it. Throws what the value's own move throws; then the next call takes the same value.
  std::optional<Value> next() {
    std::optional<Value> value;
    next(value);
    return value;
  }

  /// The same, into a `value` that is empty.
  void next(std::optional<Value>& value) {
    if (taken_ == count_) return;
    if (taken_ == 0 && wanted_ != 0 && threads_.empty()) start();
    if (threads_.empty()) {
      if (!own_.is_made) make(own_, taken_);
      own_.is_made = true;
      take(own_, value);
      return;
    }
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[taken_ % slots_.size()];
    ready_.wait(lock, [&slot] { return slot.is_made; });
    const WakeOne last{room_, lock};
    take(slot, value);
  }

  /// How many values, or exceptions in their places, next() has given out.
  std::size_t taken() const noexcept { return taken_; }

 private:
  /// Initialised by a function's result without a move, which may throw.
  struct Made {
    template <class F>
    explicit Made(const F& make) : value(make()) {}

    Value value;
  };

  struct Slot {
    std::optional<Made> made;
    std::exception_ptr failure;
    bool is_made = false;
  };

  /// Unlocks, and wakes a worker that waits for room.
  struct WakeOne {
    std::condition_variable& waiting;
    std::unique_lock<std::mutex>& lock;

    ~WakeOne() {
      lock.unlock();
      waiting.notify_one();
    }
  };

  void make(Slot& slot, std::size_t i) noexcept {
    try {
      static_cast<void>(slot.made.emplace([this, i] { return std::as_const(load_)(i); }));
    } catch (...) {
      slot.failure = std::current_exception();
    }
  }

  void take(Slot& slot, std::optional<Value>& value) {
    if (slot.failure != nullptr) {
      leave(slot);
      std::rethrow_exception(std::exchange(slot.failure, nullptr));
    }
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): a slot without a failure has been made
    static_cast<void>(value.emplace(std::move(slot.made->value)));
    leave(slot);
  }

  void leave(Slot& slot) noexcept {
    slot.made.reset();
    slot.is_made = false;
    ++taken_;
  }

  static std::size_t least(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }
  static std::size_t least(std::size_t a, std::size_t b, std::size_t c) noexcept { return least(least(a, b), c); }

  /// Starts as many threads as the system gives. With fewer, all values are still made.
  void start() {
    threads_.reserve(wanted_);
    born_ = fork_epoch();
    for (std::size_t i = 0; i < wanted_; ++i) {
      pthread_t thread{};
      if (!start_thread({}, &Prefetcher::enter, this, "fanout loader", &thread)) break;
      threads_.push_back(thread);
    }
    if (threads_.empty()) wanted_ = 0;
  }

  static void* enter(void* prefetcher) noexcept {
    static_cast<Prefetcher*>(prefetcher)->work();
    return nullptr;
  }

  void work() noexcept {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [this] { return stopped_ || begun_ == count_ || begun_ - taken_ < slots_.size(); });
      if (stopped_ || begun_ == count_) return;
      const std::size_t i = begun_++;
      Slot& slot = slots_[i % slots_.size()];  // this thread's alone until it is made
      lock.unlock();
      make(slot, i);
      lock.lock();
      slot.is_made = true;
      if (i == taken_) ready_.notify_one();
    }
  }

  Load load_;
  std::size_t count_;
  std::size_t wanted_;
  std::vector<Slot> slots_;
  Slot own_;  // without threads
  std::vector<pthread_t> threads_;
  std::uint32_t born_ = 0;

  std::mutex mutex_;
  std::condition_variable ready_;  // the value that next() waits for is made
  std::condition_variable room_;   // there is a free slot
  std::size_t begun_ = 0;
  std::size_t taken_ = 0;
  bool stopped_ = false;
};

}}}  // namespace fanout::v0::detail
