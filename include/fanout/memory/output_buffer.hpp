// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/inline_array.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/right.hpp>

namespace fanout::inline v0 {

/// The memory of one gathered array, which the shards of a call fill together, each its own rows. Counts who holds it:
/// the call, and every Tensor that shows a window of it.
class OutputBuffer {
 public:
  /// Throws OutOfMemory, and ShapeMismatch where the bytes cannot be counted. `before` is for a holder of several, which
  /// can link them by it.
  OutputBuffer(const Memory& memory, std::size_t rows, std::size_t row_bytes, OutputBuffer* before = nullptr)
      : storage_(memory, checked_extents(1, Extents<2>{rows, row_bytes}).size()),
        base_(static_cast<std::byte*>(storage_.data())),
        rows_(rows),
        row_bytes_(row_bytes),
        before_(before) {}
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  void keep() noexcept { holders_.fetch_add(1, MemoryOrder::relaxed); }
  void drop() noexcept {
    if (holders_.fetch_sub(1, MemoryOrder::acq_rel) == 1) delete this;
  }
  std::size_t holders() const noexcept { return holders_.load(MemoryOrder::acquire); }
  OutputBuffer* before() const noexcept { return before_; }

  std::size_t rows() const noexcept { return rows_; }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  std::byte* row(std::size_t i) const noexcept { return base_ + i * row_bytes_; }
  const Memory& memory() const noexcept { return storage_.memory(); }

  /// True until the bytes, if there are any, were moved out. The windows go on showing them, wherever they are owned.
  bool owns_bytes() const noexcept { return storage_.data() != nullptr; }
  Storage take() noexcept { return std::move(storage_); }

 private:
  ~OutputBuffer() = default;

  Atomic<std::size_t> holders_{1};
  Storage storage_;
  std::byte* base_;
  std::size_t rows_;
  std::size_t row_bytes_;
  OutputBuffer* before_;
};

/// The output buffers of one call. The n-th output that a shard asks for is a window of the n-th buffer, so shards that
/// ask in the same order fill the same buffers.
class OutputBuffers {
 public:
  OutputBuffers() = default;
  OutputBuffers(const OutputBuffers&) = delete;
  OutputBuffers& operator=(const OutputBuffers&) = delete;
  ~OutputBuffers() {
    for (Slot& slot : slots_) {
      if (OutputBuffer* buffer = slot.buffer.load(MemoryOrder::relaxed)) buffer->drop();
    }
    delete next_.load(MemoryOrder::relaxed);
  }

  /// The n-th buffer, made now if no shard asked for it before. Its rows may turn out to have other bytes than these if
  /// the shards ask in different orders; the caller looks. Waits for another shard that is just making it. Throws as
  /// the buffer's constructor.
  OutputBuffer& get(std::size_t n, const Memory& memory, std::size_t rows, std::size_t row_bytes) {
    if (n >= slots_.size()) return next().get(n - slots_.size(), memory, rows, row_bytes);
    Slot& slot = slots_[n];
    if (OutputBuffer* buffer = slot.buffer.load(MemoryOrder::acquire)) return *buffer;
    const HeldRight making(slot.making);
    if (OutputBuffer* buffer = slot.buffer.load(MemoryOrder::acquire)) return *buffer;
    auto* buffer = new OutputBuffer(memory, rows, row_bytes);
    slot.buffer.store(buffer, MemoryOrder::release);
    return *buffer;
  }

 private:
  struct Slot {
    Atomic<OutputBuffer*> buffer{nullptr};
    Right making;
  };

  OutputBuffers& next() {
    OutputBuffers* next = next_.load(MemoryOrder::acquire);
    if (next == nullptr) {
      auto* made = new OutputBuffers;
      if (next_.compare_exchange_strong(next, made, MemoryOrder::acq_rel)) {
        next = made;
      } else {
        delete made;
      }
    }
    return *next;
  }

  InlineArray<Slot, 8> slots_{8};
  Atomic<OutputBuffers*> next_{nullptr};
};

}  // namespace fanout::inline v0
