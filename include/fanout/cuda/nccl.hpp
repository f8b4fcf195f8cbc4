// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include <nccl.h>
#include <sched.h>
#include <time.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_calls.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/communicator.hpp>
#include <fanout/cuda/cuda_memory.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/failure_watch.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/peer_access.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

// The only header that includes NCCL's. Programs that include it must link libnccl.

namespace fanout { inline namespace v0 {

namespace cuda {

/// A call of NCCL failed, or its work on a GPU did.
class [[gnu::visibility("default")]] NcclError : public Error {
 public:
  NcclError(const std::string& text, ncclResult_t code) : Error(text), code_(code) {}

  /// What NCCL returned.
  ncclResult_t code() const noexcept { return code_; }

 private:
  ncclResult_t code_;
};

namespace detail {

inline void check_nccl(ncclResult_t result, const char* call, ncclComm_t communicator = nullptr) {
  if (result == ncclSuccess || result == ncclInProgress) [[likely]]
    return;
  const char* const last = ::ncclGetLastError(communicator);
  throw NcclError(explain({.what = std::string("NCCL error: ") + ::ncclGetErrorString(result),
                           .where = call,
                           .found = last == nullptr ? "" : last,
                           .advice = "set NCCL_DEBUG=WARN in the environment for details"}),
                  result);
}

/// The NCCL type and count that stand for a call's elements. `known` is false if NCCL has no such type.
struct NcclElements {
  bool known = false;
  ncclDataType_t type = ncclInt8;
  std::size_t count = 0;
};

inline NcclElements nccl_elements(const backend::Collective& call) {
  using Kind = backend::ElementType::Kind;
  if (call.type == nullptr) return {};
  if (!call.is_reduction()) return {true, ncclInt8, call.bytes()};  // no reduction: moved as bytes
  const auto found = [&call](ncclDataType_t type) { return NcclElements{true, type, call.count}; };
  const std::size_t size = call.type->size;
  if (call.type->kind == Kind::floating && size == 8) return found(ncclFloat64);
  if (call.type->kind == Kind::floating && size == 4) return found(ncclFloat32);
  if (call.type->kind == Kind::signed_integer && size == 8) return found(ncclInt64);
  if (call.type->kind == Kind::signed_integer && size == 4) return found(ncclInt32);
  if (call.type->kind == Kind::signed_integer && size == 1) return found(ncclInt8);
  if (call.type->kind == Kind::unsigned_integer && size == 8) return found(ncclUint64);
  if (call.type->kind == Kind::unsigned_integer && size == 4) return found(ncclUint32);
  if (call.type->kind == Kind::unsigned_integer && size == 1) return found(ncclUint8);
  return {};
}

inline ncclRedOp_t nccl_reduction(backend::Reduction by) noexcept {
  switch (by) {
    case backend::Reduction::prod:
      return ncclProd;
    case backend::Reduction::min:
      return ncclMin;
    case backend::Reduction::max:
      return ncclMax;
    case backend::Reduction::mean:
      return ncclAvg;
    case backend::Reduction::sum:
      break;
  }
  return ncclSum;
}

inline ncclResult_t start_nccl(const backend::Collective& call, ncclComm_t communicator, cudaStream_t stream) {
  const auto [known, type, count] = nccl_elements(call);
  const ncclRedOp_t by = nccl_reduction(call.reduction);
  const int root = static_cast<int>(call.root);
  if (!known) return ncclInvalidArgument;
  switch (call.kind) {
    case backend::Collective::Kind::broadcast:
      return ::ncclBroadcast(call.from, call.to, count, type, root, communicator, stream);
    case backend::Collective::Kind::reduce:
      return ::ncclReduce(call.from, call.to, count, type, by, root, communicator, stream);
    case backend::Collective::Kind::all_reduce:
      return ::ncclAllReduce(call.from, call.to, count, type, by, communicator, stream);
    case backend::Collective::Kind::all_gather:
      return ::ncclAllGather(call.from, call.to, count, type, communicator, stream);
    case backend::Collective::Kind::reduce_scatter:
      return ::ncclReduceScatter(call.from, call.to, count, type, by, communicator, stream);
    case backend::Collective::Kind::send:
      return ::ncclSend(call.from, count, type, root, communicator, stream);
    case backend::Collective::Kind::recv:
      return ::ncclRecv(call.to, count, type, root, communicator, stream);
    case backend::Collective::Kind::barrier:
      break;
  }
  return ncclInvalidArgument;
}

/// Held while calls are enqueued. If two calls on the same GPUs entered their streams in different orders, the GPUs
/// would wait for each other forever.
[[gnu::visibility("default")]] inline fanout::detail::ForkSafeMutex nccl_starting;

/// Calls `start(i)` for i in [0, count) as one NCCL group. Communicators that do not block may still be starting it.
/// Throws NcclError for the first failure.
template <class Start>
void start_group(std::size_t count, const Start& start) {
  check_nccl(::ncclGroupStart(), "ncclGroupStart");
  ncclResult_t failed = ncclSuccess;
  for (std::size_t i = 0; i < count && (failed == ncclSuccess || failed == ncclInProgress); ++i) failed = start(i);
  const ncclResult_t ended = ::ncclGroupEnd();  // also after a failure, or the thread's next calls would join the group
  check_nccl(failed, "a collective");
  check_nccl(ended, "ncclGroupEnd");
}

/// Pauses between two looks at something: yields at first, and then sleeps an eighth of the time so far, at most 1 ms.
class PausesOfPoll {
 public:
  void pause() noexcept {
    using Clock = fanout::detail::Clock;
    constexpr Clock::Time yields_for = 50'000;
    constexpr Clock::Time most = 1'000'000;
    const Clock::Time waited = Clock::now() - begin_;
    if (waited < yields_for) {
      ::sched_yield();
      return;
    }
    const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(waited / 8 < most ? waited / 8 : most)};
    ::nanosleep(&time, nullptr);
  }

 private:
  fanout::detail::Clock::Time begin_ = fanout::detail::Clock::now();
};

/// Waits until NCCL has started the communicator's last call. Only a communicator that does not block may take a while.
inline void await_start(ncclComm_t communicator, const char* call) {
  for (PausesOfPoll poll;; poll.pause()) {
    ncclResult_t state = ncclSuccess;
    check_nccl(::ncclCommGetAsyncError(communicator, &state), "ncclCommGetAsyncError", communicator);
    if (state != ncclInProgress) return check_nccl(state, call, communicator);
  }
}

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

/// The communicators that no call uses. Never destroyed: making them is slow, and libnccl may be unloaded at exit.
struct IdleCliques {
  fanout::detail::ForkSafeMutex mutex;
  NcclClique* first = nullptr;
};
[[gnu::visibility("default")]] inline IdleCliques idle_cliques;

/// One NCCL communicator per GPU of a set. Used by one call of a model at a time. A failure_watch looks at it
/// meanwhile: if a GPU fails, NCCL's kernels on the other GPUs wait for it forever, and so do threads that wait for
/// these GPUs.
class NcclClique final : public backend::TransportRanks, public WatchedWork {
 public:
  explicit NcclClique(std::span<const DeviceId> devices)
      : streams_(devices.size(), [](std::size_t) { return cudaStream_t{}; }),
        gpus_(devices.size(), [devices](std::size_t i) { return devices[i].index; }),
        marks_(devices.size()),
        failures_(devices.size()),
        communicators_(devices.size(), [](std::size_t) { return ncclComm_t{}; }) {
    check_nccl(::ncclCommInitAll(communicators_.data(), static_cast<int>(devices.size()), gpus_.data()),
               "ncclCommInitAll");
  }

  /// Takes the idle communicators of these GPUs. Null if there are none.
  static NcclClique* find_idle(std::span<const DeviceId> devices) noexcept {
    const fanout::detail::ForkSafeLock looking(idle_cliques.mutex);
    for (NcclClique** link = &idle_cliques.first; *link != nullptr; link = &(*link)->next_) {
      if ((*link)->is_for(devices)) return std::exchange(*link, (*link)->next_);
    }
    return nullptr;
  }

  /// Notes the streams of these devices, before a call on them.
  void use(std::span<const DeviceId> devices) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      streams_[i] = streams_of(gpu_at(devices[i].index), devices[i].instance).compute().get();
    }
  }

  cudaStream_t stream(std::size_t rank) const noexcept { return streams_[rank]; }

  bool takes(std::size_t rank, const backend::Collective& call) const noexcept override {
    const MemorySpace own{.owner = {.kind = "cuda", .index = gpus_[rank]}};
    return call.from_space == own && call.to_space == own && nccl_elements(call).known;
  }

  /// If a GPU is lost, this is that rank's failure, and CommunicatorAbandoned for the others. Other errors are failures
  /// of all ranks.
  void run(std::span<const backend::RankedCall> calls) override {
    const fanout::detail::ForkSafeLock starting(nccl_starting);
    const fanout::detail::ForkSafeLock using_them(mutex_);
    refuse_if_aborted();
    try {
      start_group(calls.size(), [&](std::size_t i) {
        const std::size_t rank = calls[i].rank;
        return start_nccl(*calls[i].call, communicators_[rank], stream(rank));
      });
    } catch (...) {
      const bool found = find_failures();
      for (std::size_t i = 0; i < failures_.size() && !found; ++i) failures_[i] = std::current_exception();
      abort_all();
      if (found) refuse_if_aborted();
      throw;
    }
  }

  /// The communicators cannot be used afterwards.
  void abort() noexcept override {
    const fanout::detail::ForkSafeLock aborting(mutex_);  // not while run() uses them
    abort_all();
  }

  void settle() noexcept override { failure_watch.remove(*this); }

  std::exception_ptr failure(std::size_t rank) const noexcept override {
    const fanout::detail::ForkSafeLock reading(mutex_);
    return failures_[rank];
  }

  void look() noexcept override {
    const fanout::detail::ForkSafeLock looking(mutex_);
    if (!aborted_ && find_failures()) abort_all();
  }

  void close() noexcept override {
    failure_watch.remove(*this);
    if (!is_well()) {
      abort();
      delete this;
      return;
    }
    const fanout::detail::ForkSafeLock adding(idle_cliques.mutex);
    next_ = std::exchange(idle_cliques.first, this);
  }

 private:
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
      if (state != ncclRemoteError || of_others) check_nccl(state, "a collective of NCCL");
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  /// Throws CudaError or DeviceLost if the GPU failed, also in work that it has not done yet.
  void check_gpu(std::size_t rank) {
    refuse_lost(gpus_[rank]);
    try {
      const DeviceGuard entered(gpus_[rank]);
      const RelaxedCapture relaxed;
      // CUDA finds a failure when it is asked for work that is not done.
      if (marks_[rank].is_done()) StreamRef(streams_[rank], gpus_[rank]).record(marks_[rank]);
    } catch (const CudaError& error) {
      if (error.code() == cudaErrorCudartUnloading) return;
      if (!is_of_capture(error.code())) throw;
      marks_[rank] = Event();       // it is part of a graph now
    } catch (const OutOfMemory&) {  // no event could be made: the next look tries again
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

  fanout::detail::InlineArray<cudaStream_t> streams_;
  fanout::detail::InlineArray<int> gpus_;
  mutable fanout::detail::ForkSafeMutex mutex_;  // guards the members below but the last
  fanout::detail::InlineArray<Event> marks_;     // in the streams, made when a call takes long
  fanout::detail::InlineArray<std::exception_ptr> failures_;
  fanout::detail::InlineArray<ncclComm_t> communicators_;
  bool aborted_ = false;
  NcclClique* next_ = nullptr;
};

class NcclTransport final : public backend::CollectiveTransport {
 public:
  backend::TransportRanks* open(std::span<const DeviceId> devices) const override {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (!(devices[i].kind == DeviceKind("cuda"))) return nullptr;
      for (std::size_t k = 0; k < i; ++k) {
        if (devices[k].index == devices[i].index) return nullptr;  // NCCL takes each GPU once
      }
    }
    if (!all_connected(devices)) return nullptr;
    NcclClique* clique = NcclClique::find_idle(devices);
    if (clique == nullptr) clique = make(devices);
    clique->use(devices);
    if (failure_watch.add(*clique)) return clique;
    clique->close();
    return nullptr;
  }

 private:
  /// Throws NcclError. If a GPU is lost, throws DeviceLost, which names it.
  static NcclClique* make(std::span<const DeviceId> devices) {
    try {
      return new NcclClique(devices);
    } catch (const NcclError&) {
      for (const DeviceId& device : devices) {
        static_cast<void>(streams_of(gpu_at(device.index), device.instance).compute().is_idle());
      }
      throw;
    }
  }

  /// Connects each pair of GPUs: in one process, NCCL's kernels use the memory of their peers. False if a pair cannot
  /// be connected.
  static bool all_connected(std::span<const DeviceId> devices) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (!peer_trusted(devices[k].index, devices[i].index)) return false;
      }
    }
    return true;
  }
};
inline constexpr NcclTransport nccl_transport;

}  // namespace detail
}  // namespace cuda

/// Collectives by NCCL, for `Options{.collectives = fanout::nccl_collectives()}`. If each shard of a call is on its own
/// GPU, and each two of these GPUs copy directly (see peer_link()), NCCL passes arrays in GPU memory between them, in
/// the devices' streams. Otherwise they go through host memory. Communicators are cached for later calls on the same
/// GPUs. Concurrent calls use different ones. The first call on a pair of GPUs checks it, which takes milliseconds.
///
/// If a GPU or a connection fails, the collectives are aborted on all GPUs of the call, within some milliseconds. The
/// call's ReplicaError has the failure of that shard. A thread of the process looks for failures while calls use NCCL.
/// The result lives until the process ends.
inline const backend::CollectiveTransport* nccl_collectives() noexcept { return &cuda::detail::nccl_transport; }

/// One rank of an NCCL communicator of your own, with arrays in its GPU's memory. Calls return when they are enqueued
/// in the stream. The communicator may be blocking or not. If the ranks' calls do not fit together, NCCL may wait
/// forever. Borrows the communicator and the stream.
///
/// GPUs of one process must have access to each other's arrays, or NCCL reads invalid addresses. fanout's arrays allow
/// it once peer_trusted() was called for each pair of GPUs. GPUs of other processes need no access.
class NcclCommunicator : public backend::CollectiveCalls<NcclCommunicator> {
 public:
  /// `stream` must be on the communicator's GPU. Throws NcclError.
  NcclCommunicator(ncclComm_t communicator, cuda::StreamRef stream) : communicator_(communicator), stream_(stream) {
    cuda::detail::await_start(communicator, "the start of a communicator");
    cuda::detail::check_nccl(::ncclCommUserRank(communicator, &rank_), "ncclCommUserRank", communicator);
    cuda::detail::check_nccl(::ncclCommCount(communicator, &size_), "ncclCommCount", communicator);
  }

  std::size_t rank() const noexcept { return static_cast<std::size_t>(rank_); }
  std::size_t size() const noexcept { return static_cast<std::size_t>(size_); }
  ncclComm_t get() const noexcept { return communicator_; }
  cuda::StreamRef stream() const noexcept { return stream_; }

  /// Enqueues calls that start together. Does not wait for the GPU, except for a barrier. Throws DeviceMismatch for
  /// arrays in another memory, InvalidArgument for elements that NCCL cannot reduce, and NcclError.
  void run(backend::Collective* calls, std::size_t count) {
    const MemorySpace own{.owner = {.kind = "cuda", .index = stream_.device()}};
    bool waits = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (calls[i].kind == backend::Collective::Kind::barrier) {
        waits = true;
        continue;
      }
      if (!(calls[i].from_space == own && calls[i].to_space == own)) {
        throw DeviceMismatch(
            explain({.what = "a collective of NCCL got an array in other memory",
                     .where = to_string(calls[i]),
                     .expected = to_string(own),
                     .found = to_string(calls[i].from_space == own ? calls[i].to_space : calls[i].from_space)}));
      }
      if (!cuda::detail::nccl_elements(calls[i]).known) {
        throw InvalidArgument(explain({.what = "NCCL cannot reduce these elements", .where = to_string(calls[i])}));
      }
    }
    const cuda::DeviceGuard entered(stream_.device());
    cuda::detail::start_group(count, [&](std::size_t i) {
      if (calls[i].kind == backend::Collective::Kind::barrier) return ncclSuccess;
      return cuda::detail::start_nccl(calls[i], communicator_, stream_.get());
    });
    cuda::detail::await_start(communicator_, "a collective");
    if (waits) wait_for_all();
  }

  /// Waits until all work in the stream is done. Throws NcclError if the communicator fails meanwhile, for example if
  /// another rank or the connection to it is lost.
  void wait() const {
    for (cuda::detail::PausesOfPoll poll; !stream_.is_idle(); poll.pause()) {
      cuda::detail::await_start(communicator_, "work of NCCL");
    }
  }

 private:
  /// Reduces one element of each rank: none gets it before all have called.
  void wait_for_all() const {
    detail::Storage one({{.owner = {.kind = "cuda", .index = stream_.device()}}, &cuda::cuda_memory_operations},
                        sizeof(int));
    stream_.wait(cuda::detail::current_streams(cuda::detail::gpu_at(stream_.device())).compute());
    cuda::detail::check_nccl(
        ::ncclAllReduce(one.data(), one.data(), 1, ncclInt32, ncclMax, communicator_, stream_.get()), "ncclAllReduce",
        communicator_);
    cuda::detail::await_start(communicator_, "ncclAllReduce");
    wait();
  }

  ncclComm_t communicator_;
  cuda::StreamRef stream_;
  int rank_ = 0;
  int size_ = 0;
};
static_assert(backend::Communicator<NcclCommunicator>);

}}  // namespace fanout::v0
