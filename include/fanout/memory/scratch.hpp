// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/pool.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The memory that one shard asked for and that no other thread sees. The destructor releases all of it.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { release(); }

  /// Releases all of it now.
  FANOUT_INLINE void release() noexcept;

  /// Releases the memory in order with the device's work, so the device may still use it. Keeps the values. Does
  /// nothing if some of the memory is in another space.
  void release_memory_in(const MemorySpace& space) noexcept {
    for (const OutputBuffer* own = last_; own != nullptr; own = own->before()) {
      if (!(own->memory().space == space)) return;
    }
    release_memory();
  }

  /// True if the buffer was made by this.
  bool has(const OutputBuffer& buffer) const noexcept {
    for (const OutputBuffer* own = last_; own != nullptr; own = own->before()) {
      if (own == &buffer) return true;
    }
    return false;
  }

  bool empty() const noexcept { return last_ == nullptr && kept_ == nullptr; }

  /// The same memory, with the operations for what a Scratch owns.
  static backend::Memory in(const backend::Memory& memory) noexcept {
    const backend::MemoryOperations* const scratch = memory.operations->scratch;
    return {memory.space, scratch != nullptr ? scratch : memory.operations};
  }

  /// Allocates `bytes` uninitialised bytes. Throws OutOfMemory.
  void* allocate(const backend::Memory& memory, std::size_t bytes) { return make_buffer(memory, 1, bytes).row(0); }

  /// Takes over existing memory.
  void* keep_bytes(Storage storage) {
    last_ = new OutputBuffer(std::move(storage), last_);
    return last_->row(0);
  }

  /// Makes an output buffer that no other shard shares. Throws what its constructor throws.
  OutputBuffer& make_buffer(const backend::Memory& memory, std::size_t rows, std::size_t row_bytes) {
    last_ = new OutputBuffer(in(memory), rows, row_bytes, last_);
    return *last_;
  }

  /// Keeps a value as long as this lives. The value may use memory of this.
  template <class X>
  X& retain(X value) {
    auto* const holder = new Holder<X>(kept_, std::move(value));
    kept_ = holder;
    return holder->value;
  }

 private:
  void release_memory() noexcept {
    while (last_ != nullptr) {
      OutputBuffer* buffer = last_;
      last_ = buffer->before();
      buffer->release();
    }
  }

  struct Kept : Pooled {
    explicit Kept(Kept* earlier) noexcept : before(earlier) {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    virtual ~Kept() = default;
    Kept* const before;
  };
  template <class X>
  struct Holder final : Kept {
    Holder(Kept* earlier, X&& from) : Kept(earlier), value(std::move(from)) {}
    X value;
  };

  OutputBuffer* last_ = nullptr;
  Kept* kept_ = nullptr;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/memory/scratch.ipp>
#endif
