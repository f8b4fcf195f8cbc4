// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <sched.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

inline void leave_to_owner(const MemorySpace&, void*, std::size_t, void*) noexcept {}

/// The table for bytes in the memory of `base` that the caller owns and that results are written to. Because of
/// `fresh`, copies of a tensor there are ordinary tensors.
constexpr backend::MemoryOperations borrowed_operations(const backend::MemoryOperations& base) noexcept {
  backend::MemoryOperations borrowed = base;
  borrowed.release = &leave_to_owner;
  borrowed.fresh = &base;
  borrowed.windows = nullptr;
  borrowed.borrowed = nullptr;
  return borrowed;
}

inline constexpr backend::MemoryOperations borrowed_host_operations =
    borrowed_operations(backend::host_memory_operations);

/// The table for bytes in this memory that the caller owns. Null if there is none.
inline const backend::MemoryOperations* borrowed_in(const backend::Memory& memory) noexcept {
  return memory.space == host_memory ? &borrowed_host_operations : memory.operations->fresh->borrowed;
}

/// True for the memory of borrowed_operations().
inline bool is_borrowed(const backend::Memory& memory) noexcept {
  return memory.operations->release == &leave_to_owner;
}

/// Memory of the caller for one gathered array, where the results of the call lie.
struct OutputTarget {
  void* data = nullptr;  ///< null if it lies elsewhere
  std::size_t rows = 0;
  std::size_t row_bytes = 0;
};

/// The memory of one gathered array. The shards of a call fill it together, each its own rows. It counts its holders:
/// the call, and every Tensor that shows a window of it.
class OutputBuffer : public Pooled {
 public:
  /// Allocates the memory. Throws OutOfMemory, and ShapeMismatch if the bytes cannot be counted. A holder of several
  /// buffers can link them by `before`.
  OutputBuffer(const backend::Memory& memory, std::size_t rows, std::size_t row_bytes, OutputBuffer* before = nullptr)
      : storage_(memory, checked_extents(1, Extents<2>{rows, row_bytes}).size()),
        base_(static_cast<std::byte*>(storage_.data())),
        rows_(rows),
        row_bytes_(row_bytes),
        before_(before) {}
  /// Takes over existing bytes, as one row.
  explicit OutputBuffer(Storage storage, OutputBuffer* before = nullptr) noexcept
      : OutputBuffer(std::move(storage), 1, storage.bytes(), before) {}
  /// Takes over existing bytes, as so many rows.
  OutputBuffer(Storage storage, std::size_t rows, std::size_t row_bytes) noexcept
      : OutputBuffer(std::move(storage), rows, row_bytes, nullptr) {}
  /// Uses bytes of the caller in this memory, who still owns them.
  OutputBuffer(const backend::Memory& memory, const OutputTarget& target) noexcept
      : storage_({memory.space, borrowed_in(memory)}, target.data, target.rows * target.row_bytes, nullptr),
        base_(static_cast<std::byte*>(target.data)),
        rows_(target.rows),
        row_bytes_(target.row_bytes),
        before_(nullptr) {}
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  /// Allocates memory for several devices, which fill it together. Throws as the constructor.
  FANOUT_INLINE static OutputBuffer* make_for_all(const backend::Memory& memory, std::size_t rows,
                                                  std::size_t row_bytes);

  void retain() noexcept { holders_.fetch_add(1, MemoryOrder::relaxed); }
  void release() noexcept {
    // Only a holder can add a holder, so a count of one stays one.
    if (holders() == 1 || holders_.fetch_sub(1, MemoryOrder::acq_rel) == 1) delete this;
  }
  std::size_t holders() const noexcept { return holders_.load(MemoryOrder::acquire); }
  OutputBuffer* before() const noexcept { return before_; }

  /// Which output of a shard this is, if it is of that shard alone. Must be set before it is read.
  void number_is(std::size_t number) noexcept { number_ = number; }
  std::size_t number() const noexcept { return number_; }

  std::size_t rows() const noexcept { return rows_; }
  std::size_t row_bytes() const noexcept { return row_bytes_; }
  std::byte* row(std::size_t i) const noexcept { return base_ + i * row_bytes_; }
  const backend::Memory& memory() const noexcept { return storage_.memory(); }

  /// True until the bytes are moved out; false if there are none. The windows still show them, whoever owns them.
  bool owns_bytes() const noexcept { return storage_.data() != nullptr; }
  Storage take() noexcept { return std::move(storage_); }

 private:
  OutputBuffer(Storage&& storage, std::size_t rows, std::size_t row_bytes, OutputBuffer* before) noexcept
      : storage_(std::move(storage)),
        base_(static_cast<std::byte*>(storage_.data())),
        rows_(rows),
        row_bytes_(row_bytes),
        before_(before) {}
  ~OutputBuffer() = default;

  Atomic<std::size_t> holders_{1};
  Storage storage_;
  std::byte* base_;
  std::size_t rows_;
  std::size_t row_bytes_;
  OutputBuffer* before_;
  std::size_t number_;  // not set in a buffer of all shards: that would cost each call
};

inline void release_window(const MemorySpace&, void*, std::size_t, void* owner) noexcept {
  static_cast<OutputBuffer*>(owner)->release();
}

/// The table for parts of an OutputBuffer in the memory of `base`. The buffer is the owner of a part, which releases it
/// at the end. Copies of a part are ordinary storage.
constexpr backend::MemoryOperations window_operations(const backend::MemoryOperations& base) noexcept {
  backend::MemoryOperations windows = base;
  windows.release = &release_window;
  windows.fresh = &base;
  windows.windows = nullptr;
  return windows;
}

inline constexpr backend::MemoryOperations host_window_operations = window_operations(backend::host_memory_operations);

/// The table for parts of a buffer in this memory. Null if there is none.
inline const backend::MemoryOperations* windows_in(const backend::Memory& memory) noexcept {
  return memory.space == host_memory ? &host_window_operations : memory.operations->fresh->windows;
}

/// Makes buffers for a call in place of its own OutputBuffers.
struct OutputSource {
  /// Returns the n-th buffer, or null if there is none with these rows. Throws what the constructor of one throws.
  OutputBuffer* (*make)(const OutputSource& source, std::size_t n, std::size_t rows, std::size_t row_bytes);
};

/// The output buffers of one call. The n-th output that a shard asks for is a window of the n-th buffer. So shards that
/// ask in the same order fill the same buffers.
class OutputBuffers : public Pooled {
 public:
  /// What a shard needs of a buffer that another shard has made. With this copy it need not read the buffer itself,
  /// whose cache lines belong to the other core.
  struct Place {
    OutputBuffer* buffer;
    std::byte* first;  ///< its first byte
    std::size_t row_bytes;
  };

  /// Makes its buffers in this memory.
  explicit OutputBuffers(const backend::Memory& memory) noexcept
      : space_(memory.space), operations_(memory.operations) {}
  OutputBuffers(const OutputBuffers&) = delete;
  OutputBuffers& operator=(const OutputBuffers&) = delete;
  ~OutputBuffers() {
    if (states_[0].load(MemoryOrder::relaxed) != none || others_.load(MemoryOrder::relaxed)) drop_few();
    if (next_.load(MemoryOrder::relaxed) != nullptr) drop_more();
  }

  /// The memory space of the buffers.
  const MemorySpace& space() const noexcept { return space_; }

  /// Makes the n-th buffer use the n-th target if it fits exactly. The targets are in this memory, and must outlive
  /// this. Must be called first.
  void write_to(const OutputTarget* targets, std::size_t count) noexcept {
    targets_ = targets;
    target_count_ = count;
  }

  /// Asks `source`, which it borrows, for each of the first few buffers before it makes its own. Must be called first.
  void made_by(const OutputSource& source) noexcept { source_ = &source; }

  /// Returns the n-th buffer, and makes it if no shard has asked for it before. If shards ask in different orders, its
  /// rows may have other bytes than these: the caller checks. Waits for another shard that is making it. Throws what
  /// its constructor throws.
  const Place& get(std::size_t n, std::size_t rows, std::size_t row_bytes) {
    if (n >= few) return get_more(n, rows, row_bytes);
    if (states_[n].load(MemoryOrder::acquire) != made) make(n, rows, row_bytes);
    return few_[n];
  }

  /// Returns the n-th buffer. Null if it is not made, or is not one of the first few.
  const Place* find(std::size_t n) const noexcept {
    return n < few && states_[n].load(MemoryOrder::acquire) == made ? &few_[n] : nullptr;
  }

  /// True if a buffer that a shard asked for could not be made. For use when all shards have ended.
  FANOUT_INLINE bool have_failed() const noexcept;

  /// Returns the caller's memory for the first array of these rows that no shard asked for. Empty if there is none. For
  /// use when all shards have ended.
  FANOUT_INLINE Storage take_target(std::size_t rows, std::size_t row_bytes);

 private:
  static constexpr std::size_t few = 8;

  // The states of a place. The state of one that is being made contains the fork epoch: in the child of a fork no
  // thread goes on making it.
  static constexpr std::uint16_t none = 0;
  static constexpr std::uint16_t made = 1;
  static constexpr std::uint16_t failed = 3;  // there was no memory; the next shard tries again
  static std::uint16_t being_made() noexcept { return static_cast<std::uint16_t>(fork_epoch() << 2U | 2U); }

  [[gnu::noinline]] FANOUT_INLINE void drop_few() noexcept;
  [[gnu::noinline]] FANOUT_INLINE void drop_more() noexcept;

  [[gnu::noinline]] FANOUT_INLINE void make(std::size_t n, std::size_t rows, std::size_t row_bytes);

  bool fits(std::size_t n, std::size_t rows, std::size_t row_bytes) const noexcept {
    return n < target_count_ && targets_[n].rows == rows && targets_[n].row_bytes == row_bytes &&
           targets_[n].data != nullptr;
  }

  [[gnu::noinline]] FANOUT_INLINE const Place& get_more(std::size_t n, std::size_t rows, std::size_t row_bytes);
  backend::Memory memory() const noexcept { return {space_, operations_}; }

  FANOUT_INLINE OutputBuffers& next();

  struct State : Atomic<std::uint16_t> {
    State() noexcept : Atomic<std::uint16_t>(none) {}
  };
  struct FewPlaces {
    FewPlaces() noexcept {}  // NOLINT(modernize-use-equals-default): that would set all of them to zero
    union {
      Place places[few];
    };
    Place& operator[](std::size_t n) noexcept { return places[n]; }
    const Place& operator[](std::size_t n) const noexcept { return places[n]; }
  };

  // What a shard reads to find the first buffer is in one cache line.
  const MemorySpace space_;
  State states_[few];
  FewPlaces few_;  // set if `made`
  const backend::MemoryOperations* operations_;
  Atomic<OutputBuffers*> next_{nullptr};  // the buffers from the `few`-th on
  const OutputTarget* targets_ = nullptr;
  std::size_t target_count_ = 0;
  const OutputSource* source_ = nullptr;
  Atomic<bool> others_{false};  // a buffer other than the first was asked for
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/memory/output_buffer.ipp>
#endif
