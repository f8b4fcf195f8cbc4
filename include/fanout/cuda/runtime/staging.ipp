// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/staging.hpp>

#include <fanout/cuda/runtime/page_locked.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

Staging::Room& Staging::Room::operator=(Room&& other) noexcept {
  leave();
  chunk_ = std::exchange(other.chunk_, nullptr);
  data_ = other.data_;
  used_ = other.used_;
  epoch_ = other.epoch_;
  return *this;
}

void Staging::Room::note_failure() noexcept {
  try {
    done();
  } catch (...) {
    chunk_->last_use_known = false;
  }
}

Staging::Room Staging::take(StreamRef stream, std::size_t bytes) {
  if (Room room = try_take(stream, bytes)) return room;
  Chunk& chunk = chunks_[next_.fetch_add(1, fanout::detail::MemoryOrder::relaxed) % most_chunks];
  chunk.mutex.lock();
  Room room(chunk);
  if (!ready(chunk, stream, bytes)) empty(chunk);
  place(room, stream, bytes);
  return room;
}

Staging::Room Staging::try_take(StreamRef stream, std::size_t bytes) {
  for (Chunk& chunk : chunks_) {
    if (!chunk.mutex.try_lock()) continue;
    Room room(chunk);
    if (!ready(chunk, stream, bytes)) continue;
    place(room, stream, bytes);
    return room;
  }
  return {};
}

bool Staging::ready(Chunk& chunk, StreamRef stream, std::size_t bytes) {
  if (chunk.data == nullptr) chunk.data = static_cast<std::byte*>(allocate_page_locked(chunk_bytes, gpu_, node_));
  if (!chunk.last_use_known) return false;
  // One event stands for all work that uses the chunk, so work of another stream cannot be added.
  if (chunk.used == 0 || (chunk.stream == stream && chunk.used + bytes <= chunk_bytes)) return true;
  if (!chunk.last_use.is_done()) return false;
  chunk.used = 0;
  return true;
}

void Staging::empty(Chunk& chunk) {
  if (chunk.last_use_known) {
    chunk.last_use.synchronize();
  } else {
    chunk.stream.synchronize();
    chunk.last_use_known = true;
  }
  chunk.used = 0;
}

void Staging::place(Room& room, StreamRef stream, std::size_t bytes) noexcept {
  Chunk& chunk = *room.chunk_;
  if (!(chunk.stream == stream)) {
    chunk.stream = stream;
    // An event belongs to the GPU of its first record, but streams of two GPUs may use the chunk.
    if (chunk.last_use.device() != stream.device()) chunk.last_use = Event();
  }
  room.data_ = chunk.data + chunk.used;
  room.used_ = true;
  chunk.used += (bytes + 255) / 256 * 256;  // keeps the next part aligned
}

}}}  // namespace fanout::v0::cuda::detail
