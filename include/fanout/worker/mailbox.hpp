// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <sched.h>

#include <fanout/base/cache_line.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>
#include <fanout/sync/spin.hpp>
#include <fanout/waiting/wait_policy.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The right to run on one device, which one thread at a time has, and a request that goes along when that right is
/// handed to the device's own thread. Both stand in one cache line, since what a fork and a join cost is how often a
/// line travels from core to core: there with the request, and back with the answer, which frees the device too.
///
/// A device's thread that is just looking here (it *attends*) begins a request as soon as it sees it, so that needs no
/// agreement; from one that does not, the poster may take the request back. What was held when the process forked, by
/// whatever thread, is free in the child.
class alignas(cache_line) Mailbox {
 public:
  /// What the thread is to run: `run(body, shard)`, which does not throw. Returns a flag or null. The flag is set for
  /// who waits, before the answer, when none of the caller's code is running any more.
  using Run = Atomic<bool>* (*)(const void* body, std::size_t shard) noexcept;
  struct Request {
    Run run;
    const void* body;
    std::size_t shard;
    const WaitRules* rules;  ///< how the thread is to wait afterwards; read before it answers
    std::int64_t takes;      ///< so many Ticks, as expected, or less than 1
    std::int64_t woken_at;   ///< the Ticks when the sleeping thread was woken for it, or 0
  };

  /// Tells one request of a mailbox from all others; its lowest bit says that it can be taken back. 0 is none.
  using Ticket = std::uint64_t;
  static constexpr Ticket revocable = 1;

  Mailbox() noexcept = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // The right.

  /// Takes the device if it is free. Does not wait.
  bool try_take() noexcept {
    std::uint64_t seen = current();
    while (phase(seen) == free) {
      if (word_.compare_exchange_weak(seen, seen + held, MemoryOrder::acquire)) return true;
    }
    return false;
  }

  /// Takes the device, sleeping while another thread has it.
  void take() noexcept {
    while (!try_take()) {
      std::uint64_t seen = current();
      if (phase(seen) != free && will_wake(seen)) park(word_, seen);
    }
  }

  /// Gives the device back and wakes those who wait.
  void give() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    while (!word_.compare_exchange_weak(seen, freed(seen), MemoryOrder::acq_rel)) {
    }
    if ((seen & wanted) != 0) unpark_all(word_);
  }

  // Who posts.

  /// Takes the device if it is free and hands it to its thread, with a request; else returns 0. After that the poster
  /// looks whether the thread sleeps.
  Ticket post(const Request& request) noexcept {
    std::uint64_t seen = current();
    // A body may have told its end to who waits for it, and the thread's answer is on its way.
    for (int turn = 0; phase(seen) == running && turn < 16; ++turn) {
      pause();
      seen = current();
    }
    do {
      if (phase(seen) != free) return 0;
    } while (!word_.compare_exchange_weak(seen, seen + claimed, MemoryOrder::acquire));
    // While it is claimed, nobody else writes the word. So this is a plain store, that gets out with the request before
    // the thread's next look takes the line away.
    request_ = request;
    if ((seen & attending) != 0) {
      word_.store(seen + running, MemoryOrder::release);
      return seen & ticket;
    }
    // The poster checks next if the thread sleeps. After a weaker store, both that check and the thread's last look at
    // this word could miss the other side's store: the thread would sleep on.
    word_.store(seen + posted, MemoryOrder::seq_cst);
    return (seen & ticket) | revocable;
  }

  /// Whether the request has been run.
  bool is_answered(Ticket request) const noexcept { return !is_of(word_.load(MemoryOrder::acquire), request); }

  /// Takes back a request that has not been begun. Who does has the device.
  bool take_back(Ticket request) noexcept {
    if ((request & revocable) == 0) return false;
    std::uint64_t seen = word_.load(MemoryOrder::acquire);
    while (is_of(seen, request) && phase(seen) == posted) {
      if (word_.compare_exchange_weak(seen, seen - posted + held, MemoryOrder::acq_rel)) return true;
    }
    return false;
  }

  /// Runs a request that was taken back, and answers it.
  void run_taken_back() noexcept {
    tell_end(request_.run(request_.body, request_.shard));
    give();
  }

  /// Waits until the request has been run, or the clock shows `until`; looks for so many ticks before it sleeps. False
  /// if it has not been run: it is late, or the process was forked after `epoch`.
  bool await(Ticket request, std::int64_t spin_ticks, std::uint32_t epoch, Clock::Time until = Clock::never) noexcept {
    if ((until != Clock::never && spin_ticks == Ticks::forever) || epoch != fork_epoch()) spin_ticks = 0;
    if (spin(spin_ticks, [&] { return is_answered(request); })) return true;
    while (!is_answered(request)) {
      if (epoch != fork_epoch()) return false;
      std::uint64_t seen = word_.load(MemoryOrder::acquire);
      if (!is_of(seen, request) || !will_wake(seen)) continue;
      if (until == Clock::never) {
        park(word_, seen);
      } else {
        if (Clock::now() >= until) return is_answered(request);
        park_until(word_, seen, until);
      }
    }
    return true;
  }

  // The device's thread.

  /// Begins to look here. Requests are not taken back from now on.
  void attend() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    while (phase(seen) == claimed || !word_.compare_exchange_weak(seen, seen + attending, MemoryOrder::acq_rel)) {
      if (phase(seen) == claimed) ::sched_yield(), seen = word_.load(MemoryOrder::relaxed);
    }
  }

  /// Stops looking here; false if there is a request.
  bool stop_attending() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    while (phase(seen) < posted) {
      if (phase(seen) == claimed) {
        ::sched_yield();  // who is writing may need this core
        seen = word_.load(MemoryOrder::relaxed);
      } else if (word_.compare_exchange_weak(seen, seen - attending, MemoryOrder::acq_rel)) {
        return true;
      }
    }
    return false;
  }

  /// Sleeps while another thread has the device, or lets it go on if it is just posting.
  void await_change() noexcept {
    std::uint64_t seen = current();
    if ((phase(seen) == held || phase(seen) == claimed) && will_wake(seen)) park(word_, seen);
  }

  /// Whether there is a request for a thread that is not running one.
  bool has_request() const noexcept { return phase(word_.load(MemoryOrder::seq_cst)) >= posted; }

  /// Begins a request, which this thread then has the device for. Null if there is none.
  const Request* begin() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::acquire);
    while (phase(seen) == posted) {
      if (word_.compare_exchange_weak(seen, seen - posted + running, MemoryOrder::acq_rel)) return &request_;
    }
    return phase(seen) == running ? &request_ : nullptr;
  }

  /// The request has been run and has returned `ended`: frees the device and wakes those who wait. By the thread, which
  /// attends.
  void answer(Atomic<bool>* ended) noexcept {
    tell_end(ended);
    // Others may say meanwhile that they wait, and nothing else.
    const std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    if ((word_.exchange(freed(seen), MemoryOrder::acq_rel) & wanted) != 0) unpark_all(word_);
  }

  /// In the child of a fork, before its own thread is started: nobody is here.
  void forget() noexcept { static_cast<void>(current()); }

 private:
  static void tell_end(Atomic<bool>* ended) noexcept {
    if (ended != nullptr) ended->store(true, MemoryOrder::release);
  }

  // The fields of the word: who has the device; whether its thread polls; whether somebody sleeps until that changes; a
  // count of how often the device was taken; a bit that is always set, so that no ticket is 0; the fork epoch in which
  // the rest is valid.
  static constexpr std::uint64_t free = 0;
  static constexpr std::uint64_t held = 1;
  static constexpr std::uint64_t claimed = 2;  // by a poster, who is writing the request
  static constexpr std::uint64_t posted = 3;
  static constexpr std::uint64_t running = 4;
  static constexpr std::uint64_t attending = 8;
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

  /// The word as it counts in this process.
  std::uint64_t current() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::acquire);
    while (((seen ^ epoch_now()) >> epoch_at) != 0) {
      const std::uint64_t fresh = epoch_now() | always | ((seen + one) & numbers);
      if (word_.compare_exchange_weak(seen, fresh, MemoryOrder::acq_rel)) return fresh;
    }
    return seen;
  }

  /// Lets who has the device know that someone sleeps. False if it is to be looked at again.
  bool will_wake(std::uint64_t& seen) noexcept {
    if ((seen & wanted) != 0) return true;
    if (phase(seen) == claimed) {
      ::sched_yield();  // who is writing does nothing else
      return false;
    }
    if (!word_.compare_exchange_strong(seen, seen | wanted, MemoryOrder::acq_rel)) return false;
    seen |= wanted;
    return true;
  }

  Atomic<std::uint64_t> word_{epoch_now() | always};
  Request request_{};
};

static_assert(sizeof(Mailbox) == cache_line);

/// Has a device for as long as it lives. If its own thread forks, the child does not have it.
class HeldDevice {
 public:
  explicit HeldDevice(Mailbox& device) noexcept : device_(device), epoch_(fork_epoch()) { device_.take(); }
  HeldDevice(const HeldDevice&) = delete;
  HeldDevice& operator=(const HeldDevice&) = delete;
  ~HeldDevice() {
    if (epoch_ == fork_epoch()) device_.give();
  }

 private:
  Mailbox& device_;
  std::uint32_t epoch_;
};

}}}  // namespace fanout::v0::detail
