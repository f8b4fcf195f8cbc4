// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <nccl.h>

#include <fanout/collective/collective.hpp>
#include <fanout/cuda/nccl/nccl_elements.hpp>
#include <fanout/cuda/nccl/nccl_error.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// The reduction of a call. NCCL has none for a weighted sum, so one is made, which only this communicator knows.
class NcclReduction {
 public:
  NcclReduction(const backend::Collective& call, ncclDataType_t type, ncclComm_t communicator) noexcept
      : communicator_(communicator), by_(nccl_reduction(call.reduction)) {
    if (call.weight == 1) return;
    float single = static_cast<float>(call.weight);
    double weight = call.weight;
    void* const scalar = type == ncclFloat32 ? static_cast<void*>(&single) : &weight;
    status_ = ::ncclRedOpCreatePreMulSum(&by_, scalar, type, ncclScalarHostImmediate, communicator);
    is_made_ = status_ == ncclSuccess;
  }
  NcclReduction(const NcclReduction&) = delete;
  NcclReduction& operator=(const NcclReduction&) = delete;
  /// Collectives that were called with the reduction still finish: NCCL has copied it.
  ~NcclReduction() {
    if (is_made_) static_cast<void>(::ncclRedOpDestroy(by_, communicator_));
  }

  ncclResult_t status() const noexcept { return status_; }
  ncclRedOp_t get() const noexcept { return by_; }

 private:
  ncclComm_t communicator_;
  ncclRedOp_t by_;
  ncclResult_t status_ = ncclSuccess;
  bool is_made_ = false;
};

inline ncclResult_t start_nccl(const backend::Collective& call, ncclComm_t communicator, cudaStream_t stream) {
  const auto [known, type, count] = nccl_elements(call);
  const int root = static_cast<int>(call.root);
  if (!known) return ncclInvalidArgument;
  const NcclReduction reduction(call, type, communicator);
  if (reduction.status() != ncclSuccess) return reduction.status();
  const ncclRedOp_t by = reduction.get();
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

/// The order of NCCL's kernels on each GPU: that in which they were enqueued. NCCL's kernels wait for other GPUs while
/// they run. If a kernel of one communicator kept a GPU from running one of another communicator, GPUs could wait for
/// each other forever (NCCL User Guide, "Using multiple NCCL communicators concurrently"). Guarded by nccl_starting.
class NcclOrder {
 public:
  /// Call this before kernels are enqueued in the stream.
  void before(StreamRef stream) {
    Last& last = last_[stream.device()];
    if (!(last.stream == stream)) stream.wait(last.kernels);
    last.stream = stream;
    last.is_recorded = false;
  }
  /// Call this when they are enqueued.
  void after(StreamRef stream) {
    Last& last = last_[stream.device()];
    if (last.is_recorded) return;
    stream.record(last.kernels);
    last.is_recorded = true;
  }

 private:
  struct Last {
    StreamRef stream{nullptr, -1};
    Event kernels;
    bool is_recorded = false;
  };
  Last last_[most_gpus];
};
/// Never destroyed: streams may wait for its events at exit.
[[gnu::visibility("default")]] inline NcclOrder& nccl_order = *new NcclOrder;

/// Calls `start(i)` for i in [0, count) as one NCCL group. Communicators that do not block may still be starting it.
/// Throws NcclError for the first failure, of which `what` is the name. `start` must not throw.
template <class Start>
void start_group(std::size_t count, const Start& start, const char* what = "a collective") {
  check_nccl(::ncclGroupStart(), "ncclGroupStart");
  ncclResult_t failed = ncclSuccess;
  for (std::size_t i = 0; i < count && (failed == ncclSuccess || failed == ncclInProgress); ++i) failed = start(i);
  const ncclResult_t ended = ::ncclGroupEnd();  // also after a failure, or the thread's next calls would join the group
  check_nccl(failed, what);
  check_nccl(ended, "ncclGroupEnd");
}

}}}  // namespace fanout::v0::cuda::detail
