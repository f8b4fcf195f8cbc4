// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <exception>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/call/call_rendezvous.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_calls.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/communicator.hpp>
#include <fanout/collective/host_rendezvous.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/collective/staged_communicator.hpp>
#include <fanout/dispatch/shard_tasks.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/worker/thread.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The rendezvous of the shards of one call. A shard waits only for shards that run: after a while, shards that no
/// device has started get threads of their own.
class ShardRendezvous final : public CallRendezvous::Place {
 public:
  ShardRendezvous(CallRendezvous& call, std::size_t shards) : call_(call), rendezvous_(shards) {}
  ~ShardRendezvous() override {
    if (backend::TransportRanks* const direct = direct_.load(MemoryOrder::acquire)) direct->close();
  }

  FANOUT_INLINE void leave(std::size_t shard, const std::exception_ptr& why) noexcept override;

  void settle() noexcept override {
    if (backend::TransportRanks* const direct = this->direct()) direct->settle();
  }

  FANOUT_INLINE std::exception_ptr failure(std::size_t shard) const noexcept override;

  /// Marks the calls that the devices can run without host memory. Throws what `open` of the transport throws.
  FANOUT_INLINE void find_direct(std::size_t shard, backend::Collective* calls, std::size_t count);

  bool allows_any_thread() const noexcept {
    const backend::ProcessRendezvous* const processes = call_.way().processes;
    return processes == nullptr || processes->allows_any_thread();
  }

  FANOUT_INLINE void meet(std::size_t shard, backend::Collective* calls, std::size_t count);

 private:
  /// How long devices may take to start their shards, in nanoseconds: longer than a wake-up latency, but not much
  /// longer.
  static constexpr Clock::Time patience = 1'000'000;

  /// What runs direct calls, or null.
  backend::TransportRanks* direct() const noexcept {
    const backend::ProcessRendezvous* const processes = call_.way().processes;
    return processes != nullptr ? processes->direct() : direct_.load(MemoryOrder::acquire);
  }

  FANOUT_INLINE static std::exception_ptr released_by(std::size_t rank, const std::exception_ptr& why) noexcept;

  void start_others() noexcept {
    while (ShardTask* task = call_.take_back()) {
      const auto run = [](void* own) -> void* {
        [[maybe_unused]] thread_local const LibraryInUse this_code;
        static_cast<ShardTask*>(own)->run();
        return nullptr;
      };
      if (start_thread(task->worker->cores(), run, task, "fanout shard")) continue;
      constexpr const char* why = "no thread could be started for a shard that others wait for in a collective";
      rendezvous_.break_off(why);
      if (call_.way().processes != nullptr) call_.way().processes->break_off(why);
      task->run();  // waits for no rank any more, so this thread can run it
    }
    all_run_.store(true, MemoryOrder::relaxed);
  }

  CallRendezvous& call_;
  Atomic<bool> all_run_{false};
  backend::HostRendezvous rendezvous_;
  ForkSafeMutex opening_;
  bool opened_ = false;
  Atomic<backend::TransportRanks*> direct_{nullptr};  // null: all arrays go through host memory
};

}  // namespace detail

/// The communicator of `ctx.communicator()`: collectives between the shards of a call while they run. The ranks are the
/// shards: rank() is ctx.rank() and size() is ctx.size().
///
///     auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) {
///       Gradients gradients = backward(x);         // a struct of tensors
///       ctx.communicator().all_reduce(gradients);  // of the whole batch now, on every shard
///       ...
///
/// Arrays may be in any memory. They go through host memory (see StagedCommunicator), or as Options::collectives says.
/// A call through host memory has run when it returns. A direct call is in order with the device's work.
///
/// All shards of such a call run at once: a shard whose device is busy gets a thread of its own. A shard that returns
/// or throws releases the shards that wait for it: they throw CommunicatorAbandoned. The call's ReplicaError does not
/// list them unless all failures are of this kind. A deadline ends a collective that waits for a shard of another rank
/// (Options::ranks): it throws Timeout, and so does the call. It interrupts no other collective. Borrows the call: use
/// it in `forward` only.
class ShardCommunicator : public backend::CollectiveCalls<ShardCommunicator> {
 public:
  /// `shard` counts in this process, `rank` over all processes that make the call.
  ShardCommunicator(detail::CallRendezvous& call, std::size_t shard, std::size_t rank, std::size_t size)
      : rendezvous_(&call.place<detail::ShardRendezvous>()), shard_(shard), rank_(rank), size_(size) {}

  std::size_t rank() const noexcept { return rank_; }
  std::size_t size() const noexcept { return size_; }

  /// True if run() may be called on any thread, one at a time: then buckets() reduces arrays in host memory while
  /// `forward` goes on. False if MPI allows its main thread only.
  bool allows_any_thread() const noexcept { return rendezvous_->allows_any_thread(); }

  /// Makes the calls together, and returns when they have run or, if direct, are in order with the device's work.
  /// Throws the errors of HostRendezvous, and those of the memories' operations.
  FANOUT_INLINE void run(backend::Collective* calls, std::size_t count);

 private:
  detail::ShardRendezvous* rendezvous_;
  std::size_t shard_;
  std::size_t rank_;
  std::size_t size_;
};
static_assert(backend::Communicator<ShardCommunicator>);

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/context/collectives.ipp>
#endif
