// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/sanitized.hpp>
#include <fanout/memory/size_class.hpp>
#include <fanout/memory/system_block.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Caches released blocks of host memory for all threads of the process: what one thread releases, another one takes. A
/// place holds a block or none. The thread that exchanges the block for null owns it. So there is no lock, no list with
/// stale links, and nothing that a fork could leave half done. There is no destructor, since tensors may be released
/// after it.
class Pool {
 public:
  /// Returns a block of at least so many bytes. Null if the system has no memory, even with an empty cache.
  void* take(std::size_t bytes) noexcept {
    const std::size_t index = size_class(bytes).index;
    if (keeps_blocks && index < classes) {
      if (void* const block = take_from(kept_[index])) return block;
    }
    return take_more(bytes);
  }

  /// Takes back a block that take() returned for as many bytes.
  void give(void* block, std::size_t bytes) noexcept {
    const std::size_t index = size_class(bytes).index;
    if (index >= first_counted) return give_counted(block, bytes);
    if (!keeps_blocks || !put(block, kept_[index])) release(block, bytes);
  }

  /// Returns all cached blocks to the system.
  FANOUT_INLINE void empty() noexcept;

  /// The bytes of cached blocks: all, or those of counted classes if `first` is the first of these.
  FANOUT_INLINE std::size_t kept(std::size_t first = 0) const noexcept;

 private:
  using Place = Atomic<std::uintptr_t>;  // the address of a block; odd if it was there at the last sweep

  struct EmptyPlace : Place {
    constexpr EmptyPlace() : Place(0) {}
  };

  static constexpr std::size_t places = 16;
  static constexpr std::size_t classes = size_class(std::size_t{1} << 38).index + 1;
  /// Blocks of this class and larger ones are counted. Smaller cached blocks add up to 6 MiB at most.
  static constexpr std::size_t first_counted = size_class(std::size_t{1} << 16).index;
  /// Counted blocks of up to 16 MiB have more rows of places, since a tree may have hundreds of arrays of one size.
  static constexpr std::size_t more_rows = 15;
  static constexpr std::size_t rows =
      classes + more_rows * (size_class(std::size_t{1} << 24).index + 1 - first_counted);
  static constexpr std::uint32_t gifts_between_sweeps = 256;
  static constexpr std::size_t least_limit = std::size_t{1} << 26;

  /// Row i is the first one of class i. Behind them are the other rows of each class.
  static constexpr std::size_t class_of(std::size_t row) noexcept {
    return row < classes ? row : first_counted + (row - classes) / more_rows;
  }
  static constexpr std::size_t more_of(std::size_t index) noexcept {
    return index < first_counted ? rows : classes + more_rows * (index - first_counted);
  }

  /// A cached block of the row, or null.
  [[gnu::always_inline]] static void* take_from(EmptyPlace (&row)[places]) noexcept {
    for (Place& place : row) {
      if (place.load(MemoryOrder::relaxed) == 0) continue;
      // Acquires what the thread that released the block did with it.
      if (const std::uintptr_t block = place.exchange(0, MemoryOrder::acquire)) return block_at(block);
    }
    return nullptr;
  }

  /// Returns false if there is no empty place.
  [[gnu::always_inline]] static bool put(void* block, EmptyPlace (&kept)[places]) noexcept {
    for (Place& place : kept) {
      std::uintptr_t none = place.load(MemoryOrder::relaxed);
      if (none != 0) continue;
      // Releases what this thread did with the block.
      if (place.compare_exchange_strong(none, reinterpret_cast<std::uintptr_t>(block), MemoryOrder::release))
        return true;
    }
    return false;
  }

  [[gnu::noinline]] FANOUT_INLINE void give_counted(void* block, std::size_t bytes) noexcept;

  static void* block_at(std::uintptr_t place) noexcept {
    return reinterpret_cast<void*>(place & ~std::uintptr_t{1});  // NOLINT(performance-no-int-to-ptr): a mark is in it
  }

  /// A cached block of this class, or null.
  FANOUT_INLINE void* take_kept(std::size_t index) noexcept;

  [[gnu::noinline]] FANOUT_INLINE void* take_more(std::size_t bytes) noexcept;

  [[gnu::noinline]] FANOUT_INLINE void release(void* block, std::size_t bytes) noexcept;

  /// Releases cached blocks, the largest first, until the limit is met: twice the peak of the bytes in use. Both the
  /// bytes in use and the cached ones count against it. The peak is measured only here, when the limit is exceeded.
  [[gnu::noinline]] FANOUT_INLINE void make_room() noexcept;

  std::size_t limit() const noexcept {
    const std::size_t limit = limit_.load(MemoryOrder::relaxed);
    return limit > least_limit ? limit : least_limit;
  }

  /// Releases the blocks that were here at the last sweep, and that no thread has taken since.
  [[gnu::noinline]] FANOUT_INLINE void sweep() noexcept;

  alignas(cache_line) EmptyPlace kept_[rows][places]{};
  Atomic<std::size_t> held_{0};     // bytes of counted blocks, in use and cached
  Atomic<std::size_t> limit_{0};    // valid if it is above the least
  Atomic<std::uint32_t> gifts_{0};  // counted blocks that came back
};

[[gnu::visibility("default")]] inline constinit Pool pool{};

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_bytes(std::size_t bytes);

/// Objects of derived classes come from the pool, and go back to it. A class needs make_pooled() if its alignment is
/// above that of `new` and its constructor may throw.
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

/// `new X(args...)` that releases the block if the constructor throws. C++ alone does not: it looks for an
/// `operator delete` with the alignment but without the size, and the pool needs the size.
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

/// Returns to the system the host memory that fanout caches: that of tensors, outputs and scratch memory that are gone.
/// fanout does so itself before it throws OutOfMemory. May be called from any thread, at any time.
///
/// Released memory is cached, since fresh memory costs many times what copying into it does. Memory in use and cached
/// memory together are at most twice what was in use at one time, or 64 MiB. Large blocks that no thread has taken for
/// long are released.
inline void empty_host_cache() noexcept { detail::pool.empty(); }

/// Bytes of host memory that fanout caches.
inline std::size_t host_memory_cached() noexcept { return detail::pool.kept(); }

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/memory/pool.ipp>
#endif
