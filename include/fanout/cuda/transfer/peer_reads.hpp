// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/exchange.hpp>
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
      while (*list != nullptr) delete fanout::detail::exchange(*list, (*list)->next);
    }
  }

  /// Notes a copy of these bytes: the newest work in the stream. Throws CudaError; then the copy is not noted.
  void add(const void* data, std::size_t bytes, StreamRef stream) {
    const fanout::detail::ForkSafeLock adding(mutex_);
    if (size_ >= most_before_look_) forget_done();
    Read& read = take_spare(stream.device());
    try {
      stream.record(read.done);
    } catch (...) {
      push(spare_, read);
      throw;
    }
    read.begin = static_cast<const std::byte*>(data);
    read.bytes = bytes;
    push(reads_, read);
    ++size_;
    is_empty_.store(false, fanout::detail::MemoryOrder::release);
  }

  /// Later work of the stream waits for the copies of these bytes. Throws CudaError.
  void await_in(StreamRef stream, const void* data, std::size_t bytes) {
    if (is_empty_.load(fanout::detail::MemoryOrder::acquire)) return;
    const auto* const begin = static_cast<const std::byte*>(data);
    const fanout::detail::ForkSafeLock looking(mutex_);
    for (const Read* read = reads_; read != nullptr; read = read->next) {
      if (read->begin < begin + bytes && begin < read->begin + read->bytes && !is_lost(*read)) stream.wait(read->done);
    }
  }

 private:
  struct Read {
    Read* next = nullptr;
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
    Event done{};
  };

  static void push(Read*& list, Read& read) noexcept { read.next = fanout::detail::exchange(list, &read); }

  /// A GPU that is lost reads nothing any more.
  static bool is_lost(const Read& read) noexcept {
    return losses[read.done.device()].code.load(fanout::detail::MemoryOrder::acquire) != cudaSuccess;
  }

  /// Done now and then only, since it is a call of CUDA for each copy.
  void forget_done() {
    for (Read** link = &reads_; *link != nullptr;) {
      Read& read = **link;
      if (!is_lost(read) && !read.done.is_done()) {
        link = &read.next;
        continue;
      }
      *link = read.next;
      push(spare_, read);
      --size_;
    }
    most_before_look_ = size_ < 8 ? 16 : 2 * size_;
    is_empty_.store(size_ == 0, fanout::detail::MemoryOrder::release);
  }

  /// One whose event can be recorded on this GPU.
  Read& take_spare(int gpu) {
    for (Read** link = &spare_; *link != nullptr; link = &(*link)->next) {
      if ((*link)->done.device() == gpu || (*link)->done.device() < 0)
        return *fanout::detail::exchange(*link, (*link)->next);
    }
    return *new Read;
  }

  fanout::detail::ForkSafeMutex mutex_;  // guards the members below
  Read* reads_ = nullptr;
  Read* spare_ = nullptr;
  std::size_t size_ = 0;  // of reads_
  std::size_t most_before_look_ = 16;
  fanout::detail::Atomic<bool> is_empty_{true};  // read without the mutex
};

/// The copies that read a GPU's memory. Made at first use, and never destroyed.
inline PeerReads& peer_reads_of(GpuState& gpu) {
  PeerReads* reads = gpu.peer_reads().load(fanout::detail::MemoryOrder::acquire);
  if (reads == nullptr) {
    auto* made = new PeerReads;
    if (gpu.peer_reads().compare_exchange_strong(reads, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *reads;
}

/// Later work of the stream, which overwrites or releases these bytes of the GPU, waits for other GPUs that read them.
inline void await_peer_reads(GpuState& gpu, StreamRef stream, const void* data, std::size_t bytes) {
  if (PeerReads* reads = gpu.peer_reads().load(fanout::detail::MemoryOrder::acquire))
    reads->await_in(stream, data, bytes);
}

}}}  // namespace fanout::v0::cuda::detail
