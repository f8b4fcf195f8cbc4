// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <nccl.h>

#include <fanout/base/error.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/collective_calls.hpp>
#include <fanout/collective/communicator.hpp>
#include <fanout/cuda/cuda_memory.hpp>
#include <fanout/cuda/nccl/await_start.hpp>
#include <fanout/cuda/nccl/nccl_elements.hpp>
#include <fanout/cuda/nccl/nccl_error.hpp>
#include <fanout/cuda/nccl/nccl_start.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/storage.hpp>

namespace fanout { inline namespace v0 {

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
      if (calls[i].leaves == 0) continue;
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
      if (calls[i].kind == backend::Collective::Kind::barrier || calls[i].leaves == 0) return ncclSuccess;
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
