// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Copies in flight that other GPUs make of one GPU's memory, and that no stream of that GPU waits for. So copies for
/// several GPUs do not wait for each other, nor for the work of the GPUs that they are made for. A stream that
/// overwrites or releases the memory must wait for them. Thread-safe.
class PeerReads {
 public:
  PeerReads() = default;
  PeerReads(const PeerReads&) = delete;
  PeerReads& operator=(const PeerReads&) = delete;
  ~PeerReads() {
    for (Read** list : {&reads_, &spare_}) {
      while (*list != nullptr) delete std::exchange(*list, (*list)->next);
    }
  }

  /// Notes a copy of these bytes: the newest work in the stream. Throws CudaError; then the copy is not noted.
  FANOUT_INLINE void add(const void* data, std::size_t bytes, StreamRef stream);

  /// True if a copy of these bytes was noted, which may be done by now.
  FANOUT_INLINE bool has(const void* data, std::size_t bytes) noexcept;

  /// Later work of the stream waits for the copies of these bytes. Throws CudaError.
  FANOUT_INLINE void await_in(StreamRef stream, const void* data, std::size_t bytes);

 private:
  struct Read {
    Read* next = nullptr;
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
    Event done{};

    bool is_of(const void* data, std::size_t size) const noexcept {
      const auto* const first = static_cast<const std::byte*>(data);
      return begin < first + size && first < begin + bytes;
    }
  };

  static void push(Read*& list, Read& read) noexcept { read.next = std::exchange(list, &read); }

  /// A GPU that is lost reads nothing any more.
  static bool is_lost(const Read& read) noexcept {
    return losses[read.done.device()].code.load(fanout::detail::MemoryOrder::acquire) != cudaSuccess;
  }

  /// Done now and then only, since it is a call of CUDA for each copy.
  FANOUT_INLINE void forget_done();

  /// One whose event can be recorded on this GPU.
  FANOUT_INLINE Read& take_spare(int gpu);

  fanout::detail::ForkSafeMutex mutex_;  // guards the members below
  Read* reads_ = nullptr;
  Read* spare_ = nullptr;
  std::size_t size_ = 0;  // of reads_
  std::size_t most_before_look_ = 16;
  fanout::detail::Atomic<bool> is_empty_{true};  // read without the mutex
};

/// The copies that read a GPU's memory. Made at first use, and never destroyed.
FANOUT_INLINE PeerReads& peer_reads_of(GpuState& gpu);

/// True if other GPUs may still read these bytes of the GPU.
inline bool are_read_by_peers(GpuState& gpu, const void* data, std::size_t bytes) noexcept {
  PeerReads* const reads = gpu.peer_reads().load(fanout::detail::MemoryOrder::acquire);
  return reads != nullptr && reads->has(data, bytes);
}

/// Later work of the stream, which overwrites or releases these bytes of the GPU, waits for other GPUs that read them.
inline void await_peer_reads(GpuState& gpu, StreamRef stream, const void* data, std::size_t bytes) {
  if (PeerReads* reads = gpu.peer_reads().load(fanout::detail::MemoryOrder::acquire))
    reads->await_in(stream, data, bytes);
}

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/transfer/peer_reads.ipp>
#endif
