// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/page_locked.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Page-locked memory through which ordinary host memory goes to and from a card, in a few chunks that are used again
/// and again. Each is made when all before it are in use, and never freed. Any number of threads may use it at once; a
/// chunk is one thread's at a time.
class Staging {
 public:
  /// Takes a card some 200 us over PCIe, of which the calls for it are less than a tenth; and the second-level cache of
  /// most cores still holds most of it when the card comes to read.
  static constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
  /// One that the host fills, one that the card reads, and two for other threads or a host that is late.
  static constexpr std::uint32_t most_chunks = 4;

 private:
  struct Chunk {
    fanout::detail::ForkSafeMutex mutex;  // to all below
    std::byte* data = nullptr;
    std::size_t used = 0;  // of its bytes, by work in `stream` that may not have happened yet
    StreamRef stream{nullptr, -1};
    Event last_use;              // stands for that work
    bool last_use_known = true;  // unless who used it failed before it could say
  };

 public:
  explicit Staging(Card& card) noexcept : card_(card) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// A part of a chunk for one copy, or nothing. Between take() and done(), work that uses it is put in the stream that
  /// it was taken for.
  class Room {
   public:
    Room() noexcept = default;
    Room(Room&& other) noexcept
        : chunk_(std::exchange(other.chunk_, nullptr)), data_(other.data_), used_(other.used_), epoch_(other.epoch_) {}
    Room& operator=(Room&& other) noexcept {
      std::swap(chunk_, other.chunk_);
      std::swap(data_, other.data_);
      std::swap(used_, other.used_);
      std::swap(epoch_, other.epoch_);
      return *this;
    }
    ~Room() {
      if (chunk_ == nullptr) return;
      if (used_) chunk_->last_use_known = false;
      if (epoch_ == fanout::detail::fork_epoch()) chunk_->mutex.unlock();
    }

    explicit operator bool() const noexcept { return chunk_ != nullptr; }
    std::byte* data() const noexcept { return data_; }

    /// All work that uses it is in the stream now.
    void done() {
      chunk_->stream.record(chunk_->last_use);
      used_ = false;
    }
    /// Waits until that work has happened.
    void wait() const { chunk_->last_use.synchronize(); }

   private:
    friend class Staging;
    explicit Room(Chunk& chunk) noexcept : chunk_(&chunk) {}

    Chunk* chunk_ = nullptr;
    std::byte* data_ = nullptr;
    bool used_ = false;
    std::uint32_t epoch_ = fanout::detail::fork_epoch();
  };

  /// Room for `bytes` bytes, at most chunk_bytes, that work in a stream of this card or of another will use. Waits
  /// while all chunks are in use; a thread that has a room takes more by try_take(), since two threads that wait for
  /// each other's would wait for ever. Throws OutOfMemory and CudaError.
  Room take(StreamRef stream, std::size_t bytes) {
    if (Room room = try_take(stream, bytes)) return room;
    Chunk& chunk = chunks_[next_.fetch_add(1, fanout::detail::MemoryOrder::relaxed) % most_chunks];
    chunk.mutex.lock();
    Room room(chunk);
    if (!ready(chunk, stream, bytes)) empty(chunk);
    place(room, stream, bytes);
    return room;
  }

  /// The same without waiting; nothing if all chunks are in use.
  Room try_take(StreamRef stream, std::size_t bytes) {
    for (Chunk& chunk : chunks_) {
      if (!chunk.mutex.try_lock()) continue;
      Room room(chunk);
      if (!ready(chunk, stream, bytes)) continue;
      place(room, stream, bytes);
      return room;
    }
    return {};
  }

 private:
  /// Whether there is room in the chunk now, behind what is used, or in all of it if none is used any more.
  bool ready(Chunk& chunk, StreamRef stream, std::size_t bytes) {
    if (chunk.data == nullptr) chunk.data = static_cast<std::byte*>(allocate_page_locked(chunk_bytes, card_));
    if (!chunk.last_use_known) return false;
    // Behind work of another stream there is no room: one event stands for all that uses the chunk.
    if (chunk.used == 0 || (chunk.stream == stream && chunk.used + bytes <= chunk_bytes)) return true;
    if (!chunk.last_use.is_done()) return false;
    chunk.used = 0;
    return true;
  }

  /// Waits until nothing of the chunk is used any more.
  static void empty(Chunk& chunk) {
    if (chunk.last_use_known) {
      chunk.last_use.synchronize();
    } else {
      chunk.stream.synchronize();
      chunk.last_use_known = true;
    }
    chunk.used = 0;
  }

  static void place(Room& room, StreamRef stream, std::size_t bytes) noexcept {
    Chunk& chunk = *room.chunk_;
    if (!(chunk.stream == stream)) {
      chunk.stream = stream;
      // An event stays with the card on which it was first recorded, and the streams of two cards may come here.
      if (chunk.last_use.device() != stream.device()) chunk.last_use = Event();
    }
    room.data_ = chunk.data + chunk.used;
    room.used_ = true;
    chunk.used += (bytes + 255) / 256 * 256;  // so that the next one is aligned, too
  }

  Card& card_;
  fanout::detail::Atomic<std::uint32_t> next_{0};
  Chunk chunks_[most_chunks];
};

}}}  // namespace fanout::v0::cuda::detail
