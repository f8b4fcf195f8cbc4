// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <fanout/memory/extents.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/right.hpp>

namespace fanout::inline v0 {

namespace detail {

inline void leave_to_owner(const MemorySpace&, void*, std::size_t, void*) noexcept {}

/// Tables of this form mark host memory of the caller's own, in which results are written; `fresh` makes copies of a
/// tensor there ordinary tensors.
inline constexpr MemoryOperations borrowed_host_operations{host_memory_operations.allocate, &leave_to_owner,
                                                           host_memory_operations.copy, host_memory_operations.clear,
                                                           &host_memory_operations};

}  // namespace detail

/// Host memory of the caller's own, for one gathered array.
struct OutputTarget {
  void* data = nullptr;
  std::size_t rows = 0;
  std::size_t row_bytes = 0;
};

/// The memory of one gathered array, which the shards of a call fill together, each its own rows. Counts who holds it:
/// the call, and every Tensor that shows a window of it.
class OutputBuffer : public detail::Pooled {
 public:
  /// Throws OutOfMemory, and ShapeMismatch where the bytes cannot be counted. `before` is for a holder of several,
  /// which can link them by it.
  OutputBuffer(const Memory& memory, std::size_t rows, std::size_t row_bytes, OutputBuffer* before = nullptr)
      : storage_(memory, checked_extents(1, Extents<2>{rows, row_bytes}).size()),
        base_(static_cast<std::byte*>(storage_.data())),
        rows_(rows),
        row_bytes_(row_bytes),
        before_(before) {}
  /// Of bytes that are there, one row.
  explicit OutputBuffer(Storage storage, OutputBuffer* before = nullptr) noexcept
      : storage_(std::move(storage)),
        base_(static_cast<std::byte*>(storage_.data())),
        rows_(1),
        row_bytes_(storage_.bytes()),
        before_(before) {}
  /// On top of the caller's memory, which stays the caller's.
  explicit OutputBuffer(const OutputTarget& target) noexcept
      : storage_({host_memory, &detail::borrowed_host_operations}, target.data, target.rows * target.row_bytes,
                 nullptr),
        base_(static_cast<std::byte*>(target.data)),
        rows_(target.rows),
        row_bytes_(target.row_bytes),
        before_(nullptr) {}
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  void keep() noexcept { holders_.fetch_add(1, MemoryOrder::relaxed); }
  void drop() noexcept {
    // Where there is only one holder, nobody else can make it two.
    if (holders() == 1 || holders_.fetch_sub(1, MemoryOrder::acq_rel) == 1) delete this;
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

namespace detail {

inline void release_window(const MemorySpace&, void*, std::size_t, void* owner) noexcept {
  static_cast<OutputBuffer*>(owner)->drop();
}

/// The table for parts of an OutputBuffer in a memory that `base` is for: each lets go of the buffer, which is its
/// owner, when it is released. Copies of it are ordinary storage.
constexpr MemoryOperations window_operations(const MemoryOperations& base) noexcept {
  return {base.allocate, &release_window, base.copy, base.clear, &base, base.transfer, base.bring, base.wait, nullptr};
}

inline constexpr MemoryOperations host_window_operations = window_operations(host_memory_operations);

/// The table for parts of a buffer in this memory, or null.
inline const MemoryOperations* windows_in(const Memory& memory) noexcept {
  return memory.space == host_memory ? &host_window_operations : memory.operations->fresh->windows;
}

}  // namespace detail

/// The output buffers of one call. The n-th output that a shard asks for is a window of the n-th buffer, so shards that
/// ask in the same order fill the same buffers.
class OutputBuffers : public detail::Pooled {
 public:
  OutputBuffers() noexcept {}  // NOLINT(modernize-use-equals-default): that would set the pointers to zero
  OutputBuffers(const OutputBuffers&) = delete;
  OutputBuffers& operator=(const OutputBuffers&) = delete;
  ~OutputBuffers() {
    if (made_.load(MemoryOrder::relaxed) != 0) drop_few();
    if (next_.load(MemoryOrder::relaxed) != nullptr) drop_more();
  }

  /// The n-th buffer is to stand on the n-th of these, if it fits there exactly. They outlive this. Before all else.
  void write_to(const OutputTarget* targets, std::size_t count) noexcept {
    targets_ = targets;
    target_count_ = count;
  }

  /// The n-th buffer, made now if no shard asked for it before. Its rows may turn out to have other bytes than these if
  /// the shards ask in different orders; the caller looks. Waits for another shard that is just making it. Throws as
  /// the buffer's constructor.
  OutputBuffer& get(std::size_t n, const Memory& memory, std::size_t rows, std::size_t row_bytes) {
    if (n >= few) return get_more(n, memory, rows, row_bytes);
    if ((made_.load(MemoryOrder::acquire) & bit(n)) == 0) make(n, memory, rows, row_bytes);
    return *few_[n];
  }

  /// The n-th buffer, or null if it is not made, or is not one of the first few.
  OutputBuffer* find(std::size_t n) const noexcept {
    return n < few && (made_.load(MemoryOrder::acquire) & bit(n)) != 0 ? few_[n] : nullptr;
  }

  /// The caller's memory for the first array of these rows that no shard asked for; empty if there is none. When all
  /// shards have ended.
  Storage take_target(std::size_t rows, std::size_t row_bytes) {
    const std::uint32_t made = made_.load(MemoryOrder::relaxed);
    for (std::size_t n = 0; n < few && n < target_count_; ++n) {
      if ((made & bit(n)) == 0 && fits(n, {}, rows, row_bytes)) {
        return get(n, {}, rows, row_bytes).take();
      }
    }
    return {};
  }

 private:
  static constexpr std::size_t few = 8;
  static constexpr std::uint32_t bit(std::size_t n) noexcept { return std::uint32_t{1} << n; }

  [[gnu::noinline]] void drop_few() noexcept {
    const std::uint32_t made = made_.load(MemoryOrder::relaxed);
    for (std::size_t n = 0; made >> n != 0; ++n) {
      if ((made & bit(n)) != 0) few_[n]->drop();
    }
  }
  [[gnu::noinline]] void drop_more() noexcept { delete next_.load(MemoryOrder::relaxed); }

  [[gnu::noinline]] void make(std::size_t n, const Memory& memory, std::size_t rows, std::size_t row_bytes) {
    const HeldRight making(making_);
    const std::uint32_t made = made_.load(MemoryOrder::relaxed);
    if ((made & bit(n)) != 0) return;
    few_[n] =
        fits(n, memory, rows, row_bytes) ? new OutputBuffer(targets_[n]) : new OutputBuffer(memory, rows, row_bytes);
    made_.store(made | bit(n), MemoryOrder::release);
  }

  bool fits(std::size_t n, const Memory& memory, std::size_t rows, std::size_t row_bytes) const noexcept {
    return n < target_count_ && targets_[n].rows == rows && targets_[n].row_bytes == row_bytes &&
           targets_[n].data != nullptr && memory.space == host_memory;
  }

  [[gnu::noinline]] OutputBuffer& get_more(std::size_t n, const Memory& memory, std::size_t rows,
                                           std::size_t row_bytes) {
    return next().get(n - few, memory, rows, row_bytes);
  }
  OutputBuffers& next() {
    OutputBuffers* next = next_.load(MemoryOrder::acquire);
    if (next == nullptr) {
      auto* made = new OutputBuffers;
      if (target_count_ > few) made->write_to(targets_ + few, target_count_ - few);
      if (next_.compare_exchange_strong(next, made, MemoryOrder::acq_rel)) {
        next = made;
      } else {
        delete made;
      }
    }
    return *next;
  }

  Atomic<std::uint32_t> made_{0};  // a bit for each of the few
  Right making_;
  Atomic<OutputBuffers*> next_{nullptr};  // has those from the `few`-th on
  const OutputTarget* targets_ = nullptr;
  std::size_t target_count_ = 0;
  OutputBuffer* few_[few];  // of those that are made
};

}  // namespace fanout::inline v0
