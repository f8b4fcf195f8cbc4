// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>

#include <fanout/fwd.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// The rendezvous of the shards of one call on all processes that make it. The ranks are the shards of the whole call.
/// Each process has one, and calls it for its own shards. The destructor waits until the shards of all processes have
/// left. If ranks were late in a step of the call, it waits for nobody.
class ProcessRendezvous {
 public:
  ProcessRendezvous() = default;
  ProcessRendezvous(const ProcessRendezvous&) = delete;
  ProcessRendezvous& operator=(const ProcessRendezvous&) = delete;
  virtual ~ProcessRendezvous() = default;

  /// Sets what runs calls that are `direct`. The destructor closes it. Must come before any shard runs.
  virtual void run_direct_by(TransportRanks& direct) { direct_ = &direct; }
  /// The ranks of this process, or null: then all arrays go through host memory.
  TransportRanks* direct() const noexcept { return direct_; }
  /// Sets the deadline anew, at which ranks of other processes are waited for no more.
  virtual void wait_until(detail::Clock::Time /*deadline*/) noexcept {}

  /// False if a shard's collectives must be called on the thread that runs it.
  virtual bool allows_any_thread() const noexcept { return true; }

  /// CommunicatorAbandoned if the devices of this process were released since a rank of another one failed. Else null.
  virtual std::exception_ptr release() const noexcept { return nullptr; }

  /// Called once by a shard that waits for long, since shards of its own process may not have started.
  struct Help {
    void (*start)(void* of) noexcept;
    void* of;
  };

  /// Makes the calls of a rank together, and returns when they have run, as HostRendezvous::meet() does. The arrays
  /// must be in host memory, but for direct calls. One thread at a time calls this for a rank: the one that runs the
  /// shard, or another one if allows_any_thread().
  virtual void meet(std::size_t rank, Collective* calls, std::size_t count, const Help& help) = 0;

  /// Marks a rank as gone: its shard has ended, with this exception if it is not null. Releases the ranks that need it.
  /// Called from any thread, possibly more than once.
  virtual void leave(std::size_t rank, const std::exception_ptr& why) noexcept = 0;

  /// All shards of this process have ended, or will not run. Waits for nobody. The destructor calls it, too.
  virtual void leave_all() noexcept {}

  /// Releases the ranks of this process. From now on all their calls throw Error with this reason.
  virtual void break_off(const char* why) noexcept = 0;

 private:
  TransportRanks* direct_ = nullptr;
};

}}}  // namespace fanout::v0::backend
