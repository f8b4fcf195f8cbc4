// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// A part of a copy: offset and length in bytes.
struct Run {
  std::size_t begin;
  std::size_t bytes;
};

/// Page-locked memory that stages copies between pageable host memory and a GPU, in a few chunks that are reused. A
/// chunk is allocated when all others are in use, and never freed. Thread-safe; a chunk belongs to one thread at a
/// time.
class Staging {
 public:
  /// A copy takes some 200 us over PCIe, and the calls for it less than a tenth of that. Most of the chunk is still in
  /// the L2 cache of most cores when the GPU reads it.
  static constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
  /// One chunk that the host fills, one that the GPU reads, and two for other threads or a late host.
  static constexpr std::uint32_t most_chunks = 4;

  /// The next part of at most a chunk, of `bytes` bytes in all, after `done` bytes.
  static Run next_run(std::size_t done, std::size_t bytes) noexcept {
    return {done, bytes - done < chunk_bytes ? bytes - done : chunk_bytes};
  }

 private:
  struct Chunk {
    fanout::detail::ForkSafeMutex mutex;  // guards all below
    std::byte* data = nullptr;
    std::size_t used = 0;  // bytes that work in `stream` may still use
    StreamRef stream{nullptr, -1};
    Event last_use;              // recorded after that work
    bool last_use_known = true;  // false if a user failed and the event could not be recorded
  };

 public:
  /// Its memory is on the NUMA node `node` of the host if the kernel allows it. Negative: anywhere.
  explicit Staging(GpuState& gpu, int node = -1) noexcept : gpu_(gpu), node_(node) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// A part of a chunk for one copy; may be empty. Between take() and done(), the caller enqueues work that uses it, in
  /// the stream that it was taken for.
  class Room {
   public:
    Room() noexcept = default;
    Room(Room&& other) noexcept
        : chunk_(std::exchange(other.chunk_, nullptr)), data_(other.data_), used_(other.used_), epoch_(other.epoch_) {}
    FANOUT_INLINE Room& operator=(Room&& other) noexcept;
    ~Room() { leave(); }

    explicit operator bool() const noexcept { return chunk_ != nullptr; }
    std::byte* data() const noexcept { return data_; }

    /// Call this when all work that uses it is in the stream. Throws CudaError.
    void done() {
      chunk_->stream.record(chunk_->last_use);
      used_ = false;
    }
    /// Waits until that work is done.
    void wait() const { chunk_->last_use.synchronize(); }
    /// Call this instead of done() and wait(), if the host has waited for the stream.
    void is_over() noexcept {
      chunk_->used = 0;
      chunk_->last_use_known = true;
      used_ = false;
    }

   private:
    friend class Staging;
    explicit Room(Chunk& chunk) noexcept : chunk_(&chunk) {}

    void leave() noexcept {
      if (chunk_ == nullptr) return;
      if (used_) note_failure();
      if (epoch_ == fanout::detail::fork_epoch()) chunk_->mutex.unlock();
    }

    /// The user failed before done(). What is in the stream by now may use the chunk.
    [[gnu::cold]] FANOUT_INLINE void note_failure() noexcept;

    Chunk* chunk_ = nullptr;
    std::byte* data_ = nullptr;
    bool used_ = false;
    std::uint32_t epoch_ = fanout::detail::fork_epoch();
  };

  /// A part of `bytes` bytes, at most chunk_bytes, for work in a stream of this GPU or of another. Waits while all
  /// chunks are in use. A thread that holds a part must use try_take(): two threads that wait for each other's parts
  /// would wait forever. Throws OutOfMemory and CudaError.
  FANOUT_INLINE Room take(StreamRef stream, std::size_t bytes);

  /// The same without waiting; returns an empty Room if all chunks are in use.
  FANOUT_INLINE Room try_take(StreamRef stream, std::size_t bytes);

 private:
  /// True if the chunk has room now: behind the used bytes, or in all of it if they are not used any more.
  FANOUT_INLINE bool ready(Chunk& chunk, StreamRef stream, std::size_t bytes);

  /// Waits until no work uses the chunk any more.
  FANOUT_INLINE static void empty(Chunk& chunk);

  FANOUT_INLINE static void place(Room& room, StreamRef stream, std::size_t bytes) noexcept;

  GpuState& gpu_;
  const int node_;
  fanout::detail::Atomic<std::uint32_t> next_{0};
  Chunk chunks_[most_chunks];
};

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/staging.ipp>
#endif
