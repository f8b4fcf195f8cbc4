// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/cuda/nccl/await_start.hpp>
#include <fanout/cuda/nccl/failure_watch.hpp>
#include <fanout/cuda/nccl/nccl_elements.hpp>
#include <fanout/cuda/nccl/nccl_error.hpp>
#include <fanout/cuda/nccl/nccl_start.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// While it lives, queries of this thread break no capture of a stream by another thread.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { exchange(); }

 private:
  void exchange() noexcept { note(::cudaThreadExchangeStreamCaptureMode(&mode_), current_gpu); }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class NcclClique;

/// The communicators that no call uses.
struct IdleCliques {
  fanout::detail::ForkSafeMutex mutex;
  NcclClique* first = nullptr;
};
/// Those of this process alone. Never destroyed: making them is slow, and libnccl may be unloaded at exit.
[[gnu::visibility("default")]] inline IdleCliques idle_cliques;

/// The ranks of GPUs among all ranks of NCCL: `first` on, of `all`.
struct NcclPlace {
  std::size_t first = 0;
  std::size_t all = 0;

  friend bool operator==(const NcclPlace&, const NcclPlace&) = default;
};

/// One NCCL communicator per GPU of a set. Used by one call of a model at a time. A failure_watch looks at it
/// meanwhile: if a GPU fails, NCCL's kernels on the other GPUs wait for it forever, and so do threads that wait for
/// these GPUs. Functions number the GPUs from 0; a root is one of all ranks.
class NcclClique final : public backend::TransportRanks, public WatchedWork {
 public:
  /// All ranks are on these GPUs.
  explicit NcclClique(std::span<const DeviceId> devices)
      : NcclClique(devices, {.first = 0, .all = devices.size()}, idle_cliques) {
    const fanout::detail::ForkSafeLock starting(nccl_starting);  // NCCL may hang if kernels begin meanwhile
    check_nccl(::ncclCommInitAll(communicators_.data(), static_cast<int>(devices.size()), gpus_.data()),
               "ncclCommInitAll");
  }

  /// Other ranks are in other processes. It has no communicators before join(). close() leaves it with `idle`.
  NcclClique(std::span<const DeviceId> devices, const NcclPlace& place, IdleCliques& idle)
      : streams_(devices.size(), [](std::size_t) { return cudaStream_t{}; }),
        copies_(devices.size(), [](std::size_t) { return cudaStream_t{}; }),
        ends_(devices.size()),
        gpus_(devices.size(), [devices](std::size_t i) { return devices[i].index; }),
        place_(place),
        idle_(idle),
        failures_(devices.size()),
        communicators_(devices.size(), [](std::size_t) { return ncclComm_t{}; }) {}

  /// Makes the communicators. Waits until all processes have called this with the same id. Throws NcclError.
  void join(const ncclUniqueId& id) {
    const fanout::detail::ForkSafeLock joining(mutex_);
    id_ = id;
    const auto join_one = [&](std::size_t i) noexcept {
      try {
        const DeviceGuard entered(gpus_[i]);
        return ::ncclCommInitRank(&communicators_[i], static_cast<int>(place_.all), id,
                                  static_cast<int>(place_.first + i));
      } catch (const Error&) {
        return ncclUnhandledCudaError;
      }
    };
    start_group(gpus_.size(), join_one, "ncclCommInitRank");
  }
  /// The id with which it was made.
  const ncclUniqueId& id() const noexcept { return id_; }

  /// Takes the idle communicators of these GPUs at this place. Null if there are none.
  static NcclClique* find_idle(std::span<const DeviceId> devices, const NcclPlace& place, IdleCliques& idle) noexcept {
    const fanout::detail::ForkSafeLock looking(idle.mutex);
    for (NcclClique** link = &idle.first; *link != nullptr; link = &(*link)->next_) {
      if ((*link)->is_for(devices) && (*link)->place_ == place) return std::exchange(*link, (*link)->next_);
    }
    return nullptr;
  }

  /// Destroys idle communicators. All processes that have such ones do this. In one group: their orders may differ.
  static void destroy_all(IdleCliques& idle) noexcept {
    static_cast<void>(::ncclGroupStart());
    for (const NcclClique* clique = idle.first; clique != nullptr; clique = clique->next_) {
      for (ncclComm_t communicator : clique->communicators_) static_cast<void>(::ncclCommDestroy(communicator));
    }
    static_cast<void>(::ncclGroupEnd());
    while (idle.first != nullptr) delete std::exchange(idle.first, idle.first->next_);
  }

  /// Notes the streams of these devices, before a call on them.
  void use(std::span<const DeviceId> devices) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      DeviceStreams& streams = streams_of(gpu_at(devices[i].index), devices[i].instance);
      streams_[i] = streams.compute().get();
      copies_[i] = streams.copies().get();
    }
  }

  cudaStream_t stream(std::size_t rank) const noexcept { return streams_[rank]; }

  bool takes(std::size_t rank, const backend::Collective& call) const noexcept override {
    const MemorySpace own{.owner = {.kind = "cuda", .index = gpus_[rank]}};
    return call.from_space == own && call.to_space == own && nccl_elements(call).known;
  }

  /// If a GPU is lost, this is that rank's failure, and CommunicatorAbandoned for the others. Other errors are failures
  /// of all ranks.
  void run(std::span<const backend::RankedCall> calls) override { start(calls, streams_); }

  /// In the streams of copies: the devices may have begun the shards of later calls.
  bool add_results(const backend::ResultSum& sum) override {
    fanout::detail::InlineArray<backend::Collective> calls(sum.arrays.size());
    fanout::detail::InlineArray<backend::RankedCall> ranked(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      backend::Collective& call = calls[i];
      call.kind = backend::Collective::Kind::reduce;
      call.type = sum.type;
      call.count = sum.count;
      call.from = sum.arrays[i].data;
      call.from_space = call.to_space = sum.arrays[i].space;
      call.weight = sum.arrays[i].weight;
      call.root = sum.root;
      if (i == sum.root) call.to = sum.to;
      if (!takes(i, call)) return false;
      ranked[i] = {i, &call};
    }
    reduce({ranked.data(), ranked.size()}, sum.root);
    return true;
  }

  /// The communicators cannot be used afterwards.
  void abort() noexcept override {
    const fanout::detail::ForkSafeLock aborting(mutex_);  // not while run() uses them
    abort_all();
  }

  void settle() noexcept override {
    failure_watch.remove(*this);
    // For other processes, if the watch has not seen it yet.
    if (place_.all != gpus_.size()) static_cast<void>(look_at_gpus());
  }

  std::exception_ptr failure(std::size_t rank) const noexcept override {
    const fanout::detail::ForkSafeLock reading(mutex_);
    return failures_[rank];
  }

  void look_also(const Look& look) override {
    const fanout::detail::ForkSafeLock changing(mutex_);
    look_also_ = look;
  }

  void look() noexcept override {
    const Look also = look_at_gpus();
    if (also.at != nullptr) also.at(also.of);
  }

  void close() noexcept override {
    failure_watch.remove(*this);
    look_also_ = {};
    if (!is_well()) {
      abort();
      delete this;
      return;
    }
    const fanout::detail::ForkSafeLock adding(idle_.mutex);
    next_ = std::exchange(idle_.first, this);
  }

 private:
  using Streams = fanout::detail::InlineArray<cudaStream_t>;

  void start(std::span<const backend::RankedCall> calls, const Streams& streams) {
    const fanout::detail::ForkSafeLock starting(nccl_starting);
    const fanout::detail::ForkSafeLock using_them(mutex_);
    refuse_if_aborted();
    try {
      for (const backend::RankedCall& call : calls) nccl_order.before({streams[call.rank], gpus_[call.rank]});
      start_group(calls.size(), [&](std::size_t i) {
        const std::size_t rank = calls[i].rank;
        return start_nccl(*calls[i].call, communicators_[rank], streams[rank]);
      });
      for (const backend::RankedCall& call : calls) nccl_order.after({streams[call.rank], gpus_[call.rank]});
    } catch (...) {
      const bool found = find_failures();
      for (std::size_t i = 0; i < failures_.size() && !found; ++i) failures_[i] = std::current_exception();
      abort_all();
      if (found) refuse_if_aborted();
      throw;
    }
  }

  void reduce(std::span<const backend::RankedCall> calls, std::size_t root) {
    const DeviceGuard entered(gpus_[0]);
    try {
      DeviceStreams& own = current_streams(gpu_at(gpus_[root]));  // in which this thread has allocated the result
      own.let_wait(StreamRef(copies_[root], gpus_[root]), own.compute());
      start(calls, copies_);
      await_copies();
    } catch (...) {
      static_cast<void>(look_at_gpus());
      abort();
      // The arrays are released next.
      for (std::size_t i = 0; i < copies_.size(); ++i) await_quietly(StreamRef(copies_[i], gpus_[i]));
      throw_failure();
      throw;
    }
  }

  /// Waits for the work in the streams of copies, or until the ranks are aborted. Then throws.
  void await_copies() {
    for (std::size_t i = 0; i < ends_.size(); ++i) StreamRef(copies_[i], gpus_[i]).record(ends_[i]);
    for (PausesOfPoll poll; !are_copies_done(); poll.pause()) throw_failure();
  }

  bool are_copies_done() const {
    for (const Event& end : ends_) {
      if (!end.is_done()) return false;
    }
    return true;
  }

  /// Throws if the ranks were aborted: the failure of the first rank that failed.
  void throw_failure() const {
    const fanout::detail::ForkSafeLock reading(mutex_);
    for (const std::exception_ptr& why : failures_) {
      if (why != nullptr) std::rethrow_exception(why);
    }
    refuse_if_aborted();
  }

  /// Releases the GPUs if one of them has failed. Returns what else is to be looked at.
  Look look_at_gpus() noexcept {
    const fanout::detail::ForkSafeLock looking(mutex_);
    if (!aborted_ && find_failures()) abort_all();
    return look_also_;
  }

  bool is_for(std::span<const DeviceId> devices) const noexcept {
    if (devices.size() != gpus_.size()) return false;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].index != gpus_[i]) return false;
    }
    return true;
  }

  /// Throws CommunicatorAbandoned, which names the rank that failed.
  void refuse_if_aborted() const {
    if (!aborted_) return;
    std::size_t rank = 0;
    while (rank + 1 < failures_.size() && failures_[rank] == nullptr) ++rank;
    rank += place_.first;
    throw CommunicatorAbandoned(
        explain({.what = "NCCL was aborted", .found = "a failure of rank " + std::to_string(rank)}), rank);
  }

  /// As one group: each of them may wait for the others to be aborted.
  void abort_all() noexcept {
    if (std::exchange(aborted_, true)) return;
    static_cast<void>(::ncclGroupStart());
    for (ncclComm_t communicator : communicators_) static_cast<void>(::ncclCommAbort(communicator));
    static_cast<void>(::ncclGroupEnd());
  }

  /// Notes the ranks that failed by themselves. If there are none, notes the first that lost the connection to another
  /// one. Returns false if all are well.
  bool find_failures() noexcept {
    bool found = false;
    for (const bool of_others : {false, true}) {
      for (std::size_t i = 0; i < failures_.size() && (!of_others || !found); ++i) {
        failures_[i] = failure_now(i, of_others);
        found = found || failures_[i] != nullptr;
      }
    }
    return found;
  }

  std::exception_ptr failure_now(std::size_t rank, bool of_others) noexcept {
    try {
      check_gpu(rank);
      ncclResult_t state = ncclSuccess;
      check_nccl(::ncclCommGetAsyncError(communicators_[rank], &state), "ncclCommGetAsyncError");
      if (state == ncclRemoteError && of_others && place_.all != gpus_.size()) throw_remote_error();
      if (state != ncclRemoteError || of_others) check_nccl(state, "a collective of NCCL");
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  /// A rank of another process has failed. Which one, NCCL does not tell.
  [[noreturn]] void throw_remote_error() const {
    throw CommunicatorAbandoned(
        explain({.what = "NCCL lost the connection to a rank of another process",
                 .advice = "that process says why; set NCCL_DEBUG=WARN in the environment for details"}),
        place_.first == 0 ? gpus_.size() : 0);
  }

  /// Throws CudaError or DeviceLost if the GPU failed, also in work that it has not done yet.
  void check_gpu(std::size_t rank) {
    refuse_lost(gpus_[rank]);
    try {
      const DeviceGuard entered(gpus_[rank]);
      const RelaxedCapture relaxed;
      cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
      check(::cudaStreamIsCapturing(streams_[rank], &capture), "cudaStreamIsCapturing", gpus_[rank]);
      // A query finds a failure, and enqueues nothing: an event would wait if there is no room for it.
      if (capture == cudaStreamCaptureStatusNone) static_cast<void>(StreamRef(streams_[rank], gpus_[rank]).is_idle());
    } catch (const CudaError& error) {
      if (error.code() != cudaErrorCudartUnloading && !is_of_capture(error.code())) throw;
    }
  }

  static bool is_of_capture(cudaError_t code) noexcept {
    return code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
  }

  /// False if the communicators cannot be used again. All work on the GPUs must have been waited for.
  bool is_well() const noexcept {
    for (std::size_t i = 0; i < communicators_.size(); ++i) {
      ncclResult_t state = ncclSuccess;
      if (aborted_ || losses[gpus_[i]].code.load(fanout::detail::MemoryOrder::acquire) != cudaSuccess) return false;
      if (::ncclCommGetAsyncError(communicators_[i], &state) != ncclSuccess || state != ncclSuccess) return false;
    }
    return true;
  }

  Streams streams_;
  Streams copies_;
  fanout::detail::InlineArray<Event> ends_;  // of sums of results in the streams of copies
  fanout::detail::InlineArray<int> gpus_;
  NcclPlace place_;
  IdleCliques& idle_;
  ncclUniqueId id_{};
  mutable fanout::detail::ForkSafeMutex mutex_;  // guards the members below but the last
  fanout::detail::InlineArray<std::exception_ptr> failures_;
  fanout::detail::InlineArray<ncclComm_t> communicators_;
  bool aborted_ = false;
  Look look_also_;
  NcclClique* next_ = nullptr;
};

}}}  // namespace fanout::v0::cuda::detail
