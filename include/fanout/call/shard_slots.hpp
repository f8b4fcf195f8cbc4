// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <new>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/slot.hpp>
#include <fanout/call/shard_remains.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What one shard returned. Stores nothing for void.
template <class R>
class ShardValue : public Slot<R> {};

template <>
class ShardValue<void> {
 public:
  template <class Make, class... With>
  void fill(const Make& make, With&... with) {
    make(with...);
  }
  void clear() noexcept {}
};

/// Where one shard leaves what it returned or threw, and the memory that it claimed.
template <class R>
class ShardSlot : public ShardValue<R>, public ShardRemains {
 public:
  ShardSlot() noexcept {}  // NOLINT(modernize-use-equals-default): that would set the bytes to zero
  ShardSlot(const ShardSlot&) = delete;
  ShardSlot& operator=(const ShardSlot&) = delete;
  ~ShardSlot() { this->clear(); }  // before the memory that the value may refer to
};

/// The slot of one shard and its done flag. The flag exists from the start, the slot is made later. No other shard uses
/// these cache lines. A small result arrives in the same cache line as the flag.
template <class R>
class alignas(alignof(ShardSlot<R>) > cores_apart ? alignof(ShardSlot<R>) : cores_apart) ShardCell {
 public:
  ShardCell() noexcept {}  // NOLINT(modernize-use-equals-default): that would set the bytes to zero

  void make() noexcept { ::new (static_cast<void*>(bytes_)) ShardSlot<R>(); }
  /// The slot. It must have been made.
  ShardSlot<R>& slot() noexcept { return *std::launder(static_cast<ShardSlot<R>*>(static_cast<void*>(bytes_))); }
  const ShardSlot<R>& slot() const noexcept {
    return *std::launder(static_cast<const ShardSlot<R>*>(static_cast<const void*>(bytes_)));
  }

  /// The done flag: set when the shard has ended, if another thread than the caller's ran it.
  Atomic<bool>& ended() noexcept { return ended_; }

 private:
  Atomic<bool> ended_{false};
  alignas(ShardSlot<R>) std::byte bytes_[sizeof(ShardSlot<R>)];
};

/// The slots of the shards of one call. Up to eight need no allocation. Each is best made by the thread that runs its
/// shard.
template <class R>
class ShardSlots {
 public:
  using Cell = ShardCell<R>;
  static constexpr std::size_t few = 8;

  explicit ShardSlots(std::size_t size) { make_cells(size); }
  ShardSlots(const ShardSlots&) = delete;
  ShardSlots& operator=(const ShardSlots&) = delete;
  ~ShardSlots() { release(); }

  /// Destroys all slots. Then there are so many, none of them made. Throws std::bad_alloc; then there are none.
  void resize(std::size_t size) {
    release();
    size_ = 0;
    are_made_ = false;
    make_cells(size);
  }

  /// Makes all slots.
  void make_all() noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      cells()[i].make();
      (*this)[i].runs_as_planned();
    }
    are_made_ = true;
  }

  /// Notes that every slot has been made. If `hold_something` is false, the destructor need not destroy them.
  void all_are_made(bool hold_something) noexcept { are_made_ = hold_something; }

  std::size_t size() const noexcept { return size_; }
  Cell* cells() noexcept { return static_cast<Cell*>(data_); }
  ShardSlot<R>& operator[](std::size_t i) noexcept { return cells()[i].slot(); }
  const ShardSlot<R>& operator[](std::size_t i) const noexcept { return static_cast<const Cell*>(data_)[i].slot(); }

 private:
  void make_cells(std::size_t size) {
    data_ = size > few ? ::operator new (size * sizeof(Cell), std::align_val_t{alignof(Cell)}) : few_;
    size_ = size;
    for (std::size_t i = 0; i < size; ++i) ::new (static_cast<void*>(cells() + i)) Cell();
  }
  void release() noexcept {
    if (are_made_) {
      for (std::size_t i = 0; i < size_; ++i) (*this)[i].~ShardSlot();
    }
    if (size_ > few) ::operator delete (data_, std::align_val_t{alignof(Cell)});
  }

  void* data_ = few_;
  std::size_t size_ = 0;
  bool are_made_ = false;
  alignas(Cell) std::byte few_[few * sizeof(Cell)];
};

}}}  // namespace fanout::v0::detail
