// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <sched.h>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/floating_point_modes.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>
#include <fanout/sync/spin.hpp>
#include <fanout/waiting/wait_policy.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The mutex of one device, with a slot for one request to the device's thread. A poster locks the device and hands it
/// over together with the request. Both are in one cache line, since a fork-join costs as many transfers of cache lines
/// between cores: one with the request, and one back with the completion, which also unlocks the device.
///
/// A device's thread that polls the slot starts a request as soon as it sees it. A request to a thread that does not
/// poll can be taken back. In the child of a fork the device is unlocked.
class alignas(cache_line) HandoffSlot {
 public:
  /// The function that the thread runs: `run(body, shard)`. It returns null or a flag. The flag is set before the
  /// request is complete, when no code of the caller runs any more.
  using Run = Atomic<bool>* (*)(const void* body, std::size_t shard) noexcept;
  struct Request {
    Run run;
    const void* body;
    std::size_t shard;
    const WaitRules* rules;  ///< how the thread waits afterwards; read before completion
    std::int64_t takes;      ///< expected Ticks, or less than 1 if unknown
    std::int64_t woken_at;   ///< the Ticks at which the sleeping thread was woken, or 0
    FloatingPointModes modes = FloatingPointModes::current();  ///< those that it runs under
  };

  /// Identifies a request of this slot. The lowest bit is set if it can be taken back. 0 is no request.
  using Ticket = std::uint64_t;
  static constexpr Ticket revocable = 1;

  HandoffSlot() noexcept = default;
  HandoffSlot(const HandoffSlot&) = delete;
  HandoffSlot& operator=(const HandoffSlot&) = delete;

  // The mutex.

  /// Locks the device if it is free, and returns true if it did. Does not wait.
  bool try_lock() noexcept {
    std::uint64_t seen = current();
    while (phase(seen) == free) {
      if (word_.compare_exchange_weak(seen, seen + held, MemoryOrder::acquire)) return true;
    }
    return false;
  }

  /// Locks the device. Sleeps while another thread holds it.
  FANOUT_INLINE void lock() noexcept;

  /// Unlocks the device and wakes the threads that wait.
  void unlock() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    while (!word_.compare_exchange_weak(seen, freed(seen), MemoryOrder::acq_rel)) {
    }
    if ((seen & wanted) != 0) unpark_all(word_);
  }

  // For posters.

  /// Locks the device if it is free, and hands it to its thread with a request. Returns 0 if it is not free. The poster
  /// checks next whether the thread sleeps.
  Ticket post(const Request& request) noexcept {
    std::uint64_t seen = current();
    // A body may have set its flag already, and the completion follows at once.
    for (int turn = 0; phase(seen) == running && turn < 16; ++turn) {
      pause();
      seen = current();
    }
    do {
      if (phase(seen) != free) return 0;
    } while (!word_.compare_exchange_weak(seen, seen + claimed, MemoryOrder::acquire));
    // While the slot is claimed, no other thread writes the word. So a plain store will do, which leaves this core
    // together with the request.
    // Member by member, or g++ 12 would make the request on the stack first: 8 instructions.
    request_.run = request.run;
    request_.body = request.body;
    request_.shard = request.shard;
    request_.rules = request.rules;
    request_.takes = request.takes;
    request_.woken_at = request.woken_at;
    request_.modes = request.modes;
    if ((seen & polling) != 0) {
      word_.store(seen + running, MemoryOrder::release);
      return seen & ticket;
    }
    // The poster checks next whether the thread sleeps. After a weaker store, both that check and the thread's last
    // load of this word could miss the store of the other side: the thread would sleep on.
    word_.store(seen + posted, MemoryOrder::seq_cst);
    return (seen & ticket) | revocable;
  }

  /// True if the request has been run.
  bool is_complete(Ticket request) const noexcept { return !is_of(word_.load(MemoryOrder::acquire), request); }

  /// Takes back a request that has not been started. On success the caller holds the device.
  bool take_back(Ticket request) noexcept {
    if ((request & revocable) == 0) return false;
    std::uint64_t seen = word_.load(MemoryOrder::acquire);
    while (is_of(seen, request) && phase(seen) == posted) {
      if (word_.compare_exchange_weak(seen, seen - posted + held, MemoryOrder::acq_rel)) return true;
    }
    return false;
  }

  /// Runs a request that was taken back, and completes it. Leaves the thread with whatever floating-point modes.
  void run_taken_back() noexcept {
    request_.modes.restore();
    tell_end(request_.run(request_.body, request_.shard));
    unlock();
  }

  /// Waits until the request has been run, or until the time `until`. Spins for `spin_ticks` before it sleeps. Returns
  /// false if the request has not been run: it is late, or the process was forked after `epoch`.
  FANOUT_INLINE bool await(Ticket request, std::int64_t spin_ticks, std::uint32_t epoch,
                           Clock::Time until = Clock::never) noexcept;

  // For the device's thread.

  /// Starts polling. Requests cannot be taken back from now on.
  FANOUT_INLINE void start_polling() noexcept;

  /// Stops polling. Returns false, and goes on, if there is a request.
  FANOUT_INLINE bool stop_polling() noexcept;

  /// Sleeps while another thread holds the device. Yields if that thread is posting.
  FANOUT_INLINE void await_change() noexcept;

  /// True if there is a request. For a thread that is not running one.
  bool has_request() const noexcept { return phase(word_.load(MemoryOrder::seq_cst)) >= posted; }

  /// Starts a request. From now on this thread holds the device. Returns null if there is none.
  const Request* begin() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::acquire);
    while (phase(seen) == posted) {
      if (word_.compare_exchange_weak(seen, seen - posted + running, MemoryOrder::acq_rel)) return &request_;
    }
    return phase(seen) == running ? &request_ : nullptr;
  }

  /// Completes a request that returned `ended`: sets that flag, unlocks the device and wakes the threads that wait. For
  /// the thread, while it polls.
  void complete(Atomic<bool>* ended) noexcept {
    tell_end(ended);
    // Meanwhile other threads change nothing but the mark that they wait.
    const std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    if ((word_.exchange(freed(seen), MemoryOrder::acq_rel) & wanted) != 0) unpark_all(word_);
  }

  /// Unlocks the device in the child of a fork, before its own thread is started.
  void forget() noexcept { static_cast<void>(current()); }

 private:
  static void tell_end(Atomic<bool>* ended) noexcept {
    if (ended != nullptr) ended->store(true, MemoryOrder::release);
  }

  // The fields of the word: who holds the device; its thread polls; a thread sleeps until the word changes; the number
  // of times the device was locked; a bit that is always set, so that no ticket is 0; the fork epoch in which the rest
  // is valid.
  static constexpr std::uint64_t free = 0;
  static constexpr std::uint64_t held = 1;
  static constexpr std::uint64_t claimed = 2;  // by a poster, who is writing the request
  static constexpr std::uint64_t posted = 3;
  static constexpr std::uint64_t running = 4;
  static constexpr std::uint64_t polling = 8;
  static constexpr std::uint64_t wanted = 16;
  static constexpr std::uint64_t one = 32;
  static constexpr std::uint64_t ticket = ~(one - 1);
  static constexpr int epoch_at = 48;
  static constexpr std::uint64_t always = std::uint64_t{1} << (epoch_at - 1);
  static constexpr std::uint64_t numbers = always - one;

  static bool is_of(std::uint64_t word, Ticket request) noexcept { return ((word ^ request) & ticket) == 0; }
  static std::uint64_t phase(std::uint64_t word) noexcept { return word & 7U; }
  static std::uint64_t epoch_now() noexcept { return std::uint64_t{fork_epoch()} << epoch_at; }

  static std::uint64_t freed(std::uint64_t word) noexcept {
    return (word & ~(numbers | 7U | wanted)) | ((word + one) & numbers);
  }

  /// The word. What was held before a fork does not count.
  std::uint64_t current() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::acquire);
    while (((seen ^ epoch_now()) >> epoch_at) != 0) {
      const std::uint64_t fresh = epoch_now() | always | ((seen + one) & numbers);
      if (word_.compare_exchange_weak(seen, fresh, MemoryOrder::acq_rel)) return fresh;
    }
    return seen;
  }

  /// Marks that this thread sleeps, so that the holder wakes it. Returns false if the word must be read again.
  bool will_wake(std::uint64_t& seen) noexcept {
    if ((seen & wanted) != 0) return true;
    if (phase(seen) == claimed) {
      ::sched_yield();  // the poster that writes does nothing else
      return false;
    }
    if (!word_.compare_exchange_strong(seen, seen | wanted, MemoryOrder::acq_rel)) return false;
    seen |= wanted;
    return true;
  }

  Atomic<std::uint64_t> word_{epoch_now() | always};
  Request request_{};
};

static_assert(sizeof(HandoffSlot) == cache_line);

/// Holds a device as long as it lives. After a fork by its own thread, the copy in the child does not unlock it.
class DeviceLock {
 public:
  explicit DeviceLock(HandoffSlot& device) noexcept : device_(device), epoch_(fork_epoch()) { device_.lock(); }
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;
  ~DeviceLock() {
    if (epoch_ == fork_epoch()) device_.unlock();
  }

 private:
  HandoffSlot& device_;
  std::uint32_t epoch_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/worker/handoff_slot.ipp>
#endif
