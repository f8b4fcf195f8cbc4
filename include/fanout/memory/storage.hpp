// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/requirements.hpp>
#include <fanout/memory/memory_operations.hpp>

namespace fanout { inline namespace v0 { namespace detail {

class Storage;

/// Says where the copies go that a thread makes; see CopyInto.
struct CopyHook {
  void (*copy)(CopyHook& self, Storage& to, const Storage& from);
};

/// The hook of this thread. Null if copies stay in the memory of the original.
[[gnu::visibility("default")]] inline CopyHook*& copy_hook() noexcept {
  static thread_local CopyHook* place = nullptr;
  return place;
}

/// Owns a range of bytes in one memory. Copying copies the bytes: into the same memory, or into that of a CopyInto. A
/// moved-from Storage is empty.
class Storage {
 public:
  Storage() noexcept = default;

  /// Allocates uninitialised bytes. Throws OutOfMemory.
  Storage(const backend::Memory& memory, std::size_t bytes)
      : memory_{memory.space, memory.operations->fresh},
        data_(bytes == 0 ? nullptr : memory_.operations->allocate(memory_.space, bytes)),
        bytes_(bytes) {}

  /// Takes over existing bytes. Calls `memory.operations->release` with `owner` at the end.
  Storage(const backend::Memory& memory, void* data, std::size_t bytes, void* owner) noexcept
      : memory_(memory), data_(data), bytes_(bytes), owner_(owner) {}

  Storage(const Storage& other) : Storage() { *this = other; }  // so that the memory is released if copying throws
  Storage(Storage&& other) noexcept
      : memory_(other.memory_), data_(other.data_), bytes_(other.bytes_), owner_(other.owner_) {
    other.let_go();
  }

  /// Keeps its own memory if the sizes are the same, as they are when a replica is refreshed.
  Storage& operator=(const Storage& other) {
    if (this == &other) return *this;
    if (CopyHook* const place = copy_hook()) {
      place->copy(*place, *this, other);
    } else {
      if (bytes_ != other.bytes_ || !(memory_.space == other.memory_.space))
        *this = Storage(other.memory_, other.bytes_);
      if (bytes_ != 0) memory_.operations->copy(memory_.space, data_, other.data_, bytes_);
    }
    return *this;
  }
  Storage& operator=(Storage&& other) noexcept {
    if (this == &other) return *this;
    release();
    memory_ = other.memory_;
    data_ = other.data_;
    bytes_ = other.bytes_;
    owner_ = other.owner_;
    other.let_go();
    return *this;
  }
  ~Storage() { release(); }

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  const backend::Memory& memory() const noexcept { return memory_; }
  const MemorySpace& space() const noexcept { return memory_.space; }
  void* owner() const noexcept { return owner_; }

  void clear() { memory_.operations->clear(memory_.space, data_, bytes_); }

 private:
  void release() noexcept {
    if (data_ != nullptr || owner_ != nullptr) memory_.operations->release(memory_.space, data_, bytes_, owner_);
  }
  void let_go() noexcept {
    data_ = nullptr;
    bytes_ = 0;
    owner_ = nullptr;
  }

  backend::Memory memory_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  void* owner_ = nullptr;
};

}}}  // namespace fanout::v0::detail
