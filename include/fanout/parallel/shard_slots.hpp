// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <new>

#include <fanout/parallel/shard_slot.hpp>

namespace fanout::inline v0::detail {

/// The slots of the shards of one call; up to eight need no allocation. They are made one by one, best each by the
/// thread that runs its shard, to which their lines of the cache go then without having been the caller's.
template <class R>
class ShardSlots {
 public:
  static constexpr std::size_t few = 8;

  explicit ShardSlots(std::size_t size) : size_(size) {
    if (size > few) data_ = ::operator new (size * sizeof(ShardSlot<R>), std::align_val_t{alignof(ShardSlot<R>)});
  }
  ShardSlots(const ShardSlots&) = delete;
  ShardSlots& operator=(const ShardSlots&) = delete;
  ~ShardSlots() {
    if (are_made_) {
      for (ShardSlot<R>& slot : *this) slot.~ShardSlot();
    }
    if (size_ > few) ::operator delete (data_, std::align_val_t{alignof(ShardSlot<R>)});
  }

  /// Makes them all, at once.
  void make_all() noexcept {
    for (ShardSlot<R>& slot : *this) make(slot);
    are_made_ = true;
  }

  /// Makes one of them; all_are_made() follows when all are.
  static void make(ShardSlot<R>& slot) noexcept { ::new (static_cast<void*>(&slot)) ShardSlot<R>(); }

  /// Says so, and whether they are to be destroyed: not where they hold nothing.
  void all_are_made(bool hold_something) noexcept { are_made_ = hold_something; }
  bool are_made() const noexcept { return are_made_; }

  std::size_t size() const noexcept { return size_; }
  ShardSlot<R>* data() noexcept { return static_cast<ShardSlot<R>*>(data_); }
  ShardSlot<R>& operator[](std::size_t i) noexcept { return data()[i]; }
  const ShardSlot<R>& operator[](std::size_t i) const noexcept { return begin()[i]; }
  ShardSlot<R>* begin() noexcept { return data(); }
  ShardSlot<R>* end() noexcept { return data() + size_; }
  const ShardSlot<R>* begin() const noexcept { return static_cast<const ShardSlot<R>*>(data_); }
  const ShardSlot<R>* end() const noexcept { return begin() + size_; }

  /// How far behind the beginning of this the first of a few slots stands.
  static constexpr std::size_t offset =
      (sizeof(void*) + sizeof(std::size_t) + sizeof(std::size_t) + alignof(ShardSlot<R>) - 1) / alignof(ShardSlot<R>) *
      alignof(ShardSlot<R>);

 private:
  void* data_ = few_;
  std::size_t size_;
  bool are_made_ = false;
  alignas(ShardSlot<R>) std::byte few_[few * sizeof(ShardSlot<R>)];
};

}  // namespace fanout::inline v0::detail
