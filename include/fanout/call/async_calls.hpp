// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/dispatch/shard_runner.hpp>
#include <fanout/dispatch/shard_tasks.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/floating_point_modes.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/sync/futex.hpp>
#include <fanout/sync/shared_mutex.hpp>
#include <fanout/sync/ticket_lock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

class AsyncCalls;

/// An asynchronous call. Its shards are in the queues of their devices, or it has tasks of its own kind. It must live
/// until wait() has returned.
class AsyncCall {
 public:
  explicit AsyncCall(std::size_t shards) : tasks_(shards), tickets_(tasks_.size()), running_(tasks_.size()) {}
  AsyncCall(const AsyncCall&) = delete;
  AsyncCall& operator=(const AsyncCall&) = delete;

  /// True if wait() does not wait for a `forward`: all shards have ended, or the process was forked, so they never
  /// will.
  bool is_over() const noexcept { return running_.load(MemoryOrder::acquire) == 0 || forked(); }

  /// True if the process was forked after the call was made. No thread of the child runs it.
  bool forked() const noexcept { return tasks_.epoch() != fork_epoch(); }

  /// True if replicas run it in order with the calls before and after it.
  bool in_order() const noexcept { return in_order_; }

  /// The floating-point modes of the thread that made the call.
  FloatingPointModes modes() const noexcept { return runner_.modes; }

  /// The list that posts the call, and that the call retains; null if it was never posted.
  AsyncCalls* calls() const noexcept { return calls_; }
  FANOUT_INLINE void keep_in(AsyncCalls& calls) noexcept;

  /// See AsyncCalls::take_back_for().
  FANOUT_INLINE ShardTask* take_back() noexcept;

  /// For a call that has tasks of its own kind: true while some have not ended.
  void set_running(bool running) noexcept { running_.store(running ? 1 : 0, MemoryOrder::release); }

 protected:
  virtual ~AsyncCall() = default;
  /// Takes back a task that no device has started. Called with the list locked. Returns null if there is none.
  FANOUT_INLINE virtual ShardTask* take_back_task() noexcept;
  /// Waits until all tasks have ended. Called when none could be taken back. Returns false if one may be by now.
  FANOUT_INLINE virtual bool wait_for_tasks() noexcept;
  /// Call this before the call is posted.
  void deadline_is(Clock::Time deadline) noexcept { deadline_ = deadline; }
  /// Call this instead of posting the call: its shards never run.
  void never_runs() noexcept { running_.store(0, MemoryOrder::relaxed); }

 private:
  friend class AsyncCalls;

  struct Body {
    AsyncCall* call;
    FANOUT_INLINE void operator()(std::size_t i) const noexcept;
    void tell_late() const noexcept { call->tell_late(); }
  };

  virtual void run_shard(std::size_t i) noexcept = 0;
  /// Reports the shards that have not ended at the deadline.
  virtual void tell_late() noexcept = 0;

  Clock::Time deadline_ = Clock::never;
  Body body_{this};
  const ShardRunner runner_{body_};
  ShardTasks tasks_;
  InlineArray<std::uint32_t> tickets_;  // of each shard, in the ticket lock of its replica
  Atomic<std::size_t> running_;         // number of shards that have not ended
  const Plan* plan_ = nullptr;
  AsyncCalls* calls_ = nullptr;
  SharedMutex* mutex_ = nullptr;
  bool in_order_ = false;
  bool waited_for_ = false;  // written by the waiting thread only
  // Guarded by the mutex of the list:
  bool listed_ = false;
  std::size_t next_task_ = 0;  // earlier ones were taken back or started
  AsyncCall* previous_ = nullptr;
  AsyncCall* next_ = nullptr;
};

/// What a model asks of its asynchronous calls, as a table of functions. Only the constructor of AsyncCalls names it,
/// so programs without asynchronous calls have none of their code.
struct AsyncPart {
  void (AsyncCalls::*help)() noexcept;
  void (AsyncCalls::*wait_for_ordered)();
  void (AsyncCalls::*end)() noexcept;
  static const AsyncPart table;
};

/// The calls of one model that have not ended, oldest first. Calls that change replicas are ordered: a shard waits
/// until the shards of earlier calls have ended on its replica. Shards are started and taken back in order, so a shard
/// only waits for shards that run. Reference-counted: the model and each call retain it.
class AsyncCalls {
 public:
  /// For a model with this number of replicas. The caller owns the first reference.
  explicit AsyncCalls(std::size_t replicas) : turns_(replicas) {}
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;

  /// Calls a function of the table.
  template <class F>
  [[gnu::cold, gnu::noinline]] void tell(F AsyncPart::*function) {
    (this->*(part_.*function))();
  }

  void retain() noexcept { holders_.fetch_add(1, MemoryOrder::relaxed); }
  void release() noexcept {
    if (holders_.fetch_sub(1, MemoryOrder::acq_rel) == 1) delete this;
  }

  /// True if there may be ordered calls. Exact for the calls of this thread.
  bool has_ordered() const noexcept { return ordered_.load(MemoryOrder::relaxed) != 0; }

  /// Queues all shards of a call. The call holds a shared lock on `mutex`, which the thread that runs its last shard
  /// releases. `plan` must be the call's own. Does not wait.
  FANOUT_INLINE void post(AsyncCall& call, const Plan& plan, const DeviceTable& devices, SharedMutex& mutex,
                          bool in_order) noexcept;

  /// Lists a call that has tasks of its own kind. It holds a shared lock on `mutex` until end_call(), and calls
  /// remind() when it has posted a task.
  FANOUT_INLINE void begin_call(AsyncCall& call, SharedMutex& mutex) noexcept;
  FANOUT_INLINE void remind(AsyncCall& call) noexcept;
  /// Called by the thread that has run the last task of a call.
  FANOUT_INLINE void end_call(AsyncCall& call) noexcept;

  /// Runs the shards of the call that no device has started on this thread. If the call is ordered, runs those of
  /// earlier ordered calls first. Then waits until the call has ended. Returns false if the process was forked after
  /// the call was made.
  FANOUT_INLINE bool wait(AsyncCall& call) noexcept;

  /// Takes back a shard that no device has started, of the call or of an earlier ordered one. The caller must run it.
  /// Used by shards of the call that wait for each other, so the call has not ended. Returns null if there is none.
  FANOUT_INLINE ShardTask* take_back_for(AsyncCall& call) noexcept;

  /// Runs the shards of all calls that no device has started, oldest first, on this thread. Does not wait for the
  /// others.
  FANOUT_INLINE void help() noexcept;

  /// Waits for the ordered calls that were made so far. Runs their open shards first.
  FANOUT_INLINE void wait_for_ordered();

  /// Called when the model ends: waits for all calls, and until no other thread uses the model. Runs open shards first.
  /// Releases the model's reference.
  FANOUT_INLINE void end() noexcept;

 private:
  friend struct AsyncCall::Body;

  ~AsyncCalls() = default;

  FANOUT_INLINE void run(AsyncCall& call, std::size_t i) noexcept;

  FANOUT_INLINE ShardTask* take_back_any(bool in_order) noexcept;

  FANOUT_INLINE void list(AsyncCall& call) noexcept;
  FANOUT_INLINE void unlist(AsyncCall& call) noexcept;

  /// Forgets all calls in the child of a fork: the threads that run them stayed in the parent.
  [[gnu::cold]] FANOUT_INLINE void revive() noexcept;

  const AsyncPart& part_ = AsyncPart::table;
  Atomic<std::size_t> holders_{1};
  Atomic<std::size_t> ordered_{0};  // number of ordered calls in the list
  Atomic<std::uint32_t> ended_{0};  // counts ended calls, to park on
  Atomic<bool> is_ending_{false};   // a thread waits in end()
  ForkSafeMutex mutex_;             // guards the members below
  std::uint32_t epoch_ = fork_epoch();
  AsyncCall* first_ = nullptr;
  AsyncCall* last_ = nullptr;
  InlineArray<TicketLock> turns_;  // one per replica; only drawing tickets is guarded
};

inline constexpr AsyncPart AsyncPart::table{
    .help = &AsyncCalls::help, .wait_for_ordered = &AsyncCalls::wait_for_ordered, .end = &AsyncCalls::end};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/async_calls.ipp>
#endif
