// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include <fanout/base/annotate.hpp>
#include <fanout/base/cache_line.hpp>
#include <fanout/base/error.hpp>
#include <fanout/memory/sanitized.hpp>
#include <fanout/memory/size_class.hpp>
#include <fanout/memory/system_block.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The blocks of host memory that are kept for later, for all threads of the process: what one drops, another takes.
/// A place holds a block or none, and whoever exchanges it for null has it; so there is no lock, no list whose links
/// could be stale, and nothing that a fork could leave half done. Has no destructor: tensors may be dropped after it.
class Pool {
 public:
  /// A block of at least so many bytes, or null if the system has no memory even when nothing is kept any more.
  void* take(std::size_t bytes) noexcept {
    const std::size_t index = size_class(bytes).index;
    if (keeps_blocks && index < classes) {
      for (Place& place : kept_[index]) {
        if (place.load(MemoryOrder::relaxed) == 0) continue;
        // Acquires what the one who dropped it did with it.
        if (const std::uintptr_t block = place.exchange(0, MemoryOrder::acquire)) return block_at(block);
      }
    }
    return take_new(bytes);
  }

  /// Gives back what take() returned for as many bytes.
  void give(void* block, std::size_t bytes) noexcept {
    const std::size_t index = size_class(bytes).index;
    if (index >= first_counted) return give_counted(block, bytes);
    if (!keeps_blocks || !put(block, kept_[index])) release(block, bytes);
  }

  /// Gives all that is kept back to the system.
  void empty() noexcept {
    for (std::size_t i = classes; i > 0; --i) {
      for (Place& place : kept_[i - 1]) drop(place, i - 1);
    }
  }

  /// Bytes that are kept, in blocks of these classes and larger ones.
  std::size_t kept(std::size_t first = 0) const noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = first; i < classes; ++i) {
      for (const Place& place : kept_[i]) bytes += place.load(MemoryOrder::relaxed) == 0 ? 0 : class_bytes(i);
    }
    return bytes;
  }

 private:
  using Place = Atomic<std::uintptr_t>;  // of a block; odd if it was there already when the pool was last swept

  struct EmptyPlace : Place {
    constexpr EmptyPlace() : Place(0) {}
  };

  static constexpr std::size_t places = 16;
  static constexpr std::size_t classes = size_class(std::size_t{1} << 38).index + 1;
  /// From here on blocks count. All that can be kept of smaller ones is 6 MiB.
  static constexpr std::size_t first_counted = size_class(std::size_t{1} << 16).index;
  static constexpr std::uint32_t gifts_between_sweeps = 256;
  static constexpr std::size_t least_limit = std::size_t{1} << 26;

  /// True if there was an empty place.
  [[gnu::always_inline]] static bool put(void* block, EmptyPlace (&kept)[places]) noexcept {
    for (Place& place : kept) {
      std::uintptr_t none = place.load(MemoryOrder::relaxed);
      if (none != 0) continue;
      // Releases what this thread did with it.
      if (place.compare_exchange_strong(none, reinterpret_cast<std::uintptr_t>(block), MemoryOrder::release))
        return true;
    }
    return false;
  }

  [[gnu::noinline]] void give_counted(void* block, std::size_t bytes) noexcept {
    const std::size_t index = size_class(bytes).index;
    if (gifts_.fetch_add(1, MemoryOrder::relaxed) % gifts_between_sweeps == gifts_between_sweeps - 1) sweep();
    if (!keeps_blocks || index >= classes || !put(block, kept_[index])) release(block, bytes);
  }

  static void* block_at(std::uintptr_t place) noexcept {
    return reinterpret_cast<void*>(place & ~std::uintptr_t{1});  // NOLINT(performance-no-int-to-ptr): a mark is in it
  }

  [[gnu::noinline]] void* take_new(std::size_t bytes) noexcept {
    const SizeClass wanted = size_class(bytes);
    void* block = get_system_block(wanted.bytes);
    if (block == nullptr) {
      empty();
      block = get_system_block(wanted.bytes);
    }
    if (block == nullptr) return nullptr;
    if (wanted.index >= first_counted) {
      const std::size_t held = held_.fetch_add(wanted.bytes, MemoryOrder::relaxed) + wanted.bytes;
      if (held > limit()) make_room();  // before anyone touches the new one's pages
    }
    // The rest of the block is not what was asked for.
    close_bytes(static_cast<std::byte*>(block) + bytes, wanted.bytes - bytes);
    return block;
  }

  [[gnu::noinline]] void release(void* block, std::size_t bytes) noexcept {
    const SizeClass own = size_class(bytes);
    open_bytes(block, own.bytes);
    release_system_block(block, own.bytes);
    if (own.index >= first_counted) held_.fetch_sub(own.bytes, MemoryOrder::relaxed);
  }

  void drop(Place& place, std::size_t index) noexcept {
    if (place.load(MemoryOrder::relaxed) == 0) return;
    const std::uintptr_t block = place.exchange(0, MemoryOrder::acquire);
    if (block != 0) release(block_at(block), class_bytes(index));
  }

  /// Drops what is kept, the largest first, until no more is held, in use and kept, than twice the most that was in use
  /// at one time. That is looked at only here, where more is held than ever before.
  [[gnu::noinline]] void make_room() noexcept {
    const std::size_t held = held_.load(MemoryOrder::relaxed);
    const std::size_t unused = kept(first_counted);
    const std::size_t used = held > unused ? held - unused : 0;
    if (2 * used > limit()) limit_.store(2 * used, MemoryOrder::relaxed);
    for (std::size_t i = classes; i > first_counted; --i) {
      for (Place& place : kept_[i - 1]) {
        if (held_.load(MemoryOrder::relaxed) <= limit()) return;
        drop(place, i - 1);
      }
    }
  }

  std::size_t limit() const noexcept {
    const std::size_t limit = limit_.load(MemoryOrder::relaxed);
    return limit > least_limit ? limit : least_limit;
  }

  /// Drops the blocks that lay there when the pool was last swept, and nobody has wanted since.
  [[gnu::noinline]] void sweep() noexcept {
    for (std::size_t i = first_counted; i < classes; ++i) {
      for (Place& place : kept_[i]) {
        std::uintptr_t block = place.load(MemoryOrder::relaxed);
        if (block == 0) continue;
        const bool lay_there = block % 2 != 0;
        if (!place.compare_exchange_strong(block, lay_there ? 0 : block + 1, MemoryOrder::acq_rel)) continue;
        if (lay_there) release(block_at(block), class_bytes(i));
      }
    }
  }

  alignas(cache_line) EmptyPlace kept_[classes][places]{};
  Atomic<std::size_t> held_{0};     // of the blocks that count, in use and kept
  Atomic<std::size_t> limit_{0};    // if it is above the least
  Atomic<std::uint32_t> gifts_{0};  // of blocks that count
};

FANOUT_EXPORT inline constinit Pool pool{};

template <std::integral Size>
[[noreturn, gnu::cold]] void refuse_bytes(Size bytes) {
  throw OutOfMemory(explain(
      {.what = "out of host memory", .expected = std::to_string(bytes) + " bytes", .advice = "use smaller batches"}));
}

/// Objects of classes below this come from the pool, and go back to it. Those of a class that is aligned to more than
/// `new` does, and whose constructor may throw, are made by make_pooled().
struct Pooled {
  static void* operator new(std::size_t bytes) {
    if (void* const block = pool.take(bytes)) return block;
    refuse_bytes(bytes);
  }
  static void operator delete(void* block, std::size_t bytes) noexcept { pool.give(block, bytes); }
  static void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return alignment <= std::align_val_t{cores_apart} ? operator new(bytes) : ::operator new(bytes, alignment);
  }
  static void operator delete(void* block, std::size_t bytes, std::align_val_t alignment) noexcept {
    alignment <= std::align_val_t{cores_apart} ? operator delete(block, bytes) : ::operator delete(block, alignment);
  }
};

/// `new X(args...)` that gives the block back if the constructor throws. By itself C++ does not: it looks for an
/// `operator delete` that is told the alignment and not the size, without which the pool cannot take a block.
template <class X, class... Args>
X* make_pooled(Args&&... args) {
  void* const block = X::operator new (sizeof(X), std::align_val_t{alignof(X)});
  try {
    return ::new (block) X(static_cast<Args&&>(args)...);
  } catch (...) {
    X::operator delete (block, sizeof(X), std::align_val_t{alignof(X)});
    throw;
  }
}

}  // namespace detail

/// Gives the host memory back to the system that fanout keeps for later: that of tensors, outputs and scratch which
/// were dropped. Done by itself before OutOfMemory is thrown. From any thread, at any time.
///
/// What is dropped is kept since fresh memory costs many times what copying to it does. No more is kept than makes
/// twice what was in use at one time, or 64 MiB, and large blocks that nobody has wanted for long go back.
inline void empty_host_cache() noexcept { detail::pool.empty(); }

/// Bytes of host memory that fanout keeps for later.
inline std::size_t host_memory_cached() noexcept { return detail::pool.kept(); }

}}  // namespace fanout::v0
