// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>

#include <fanout/memory/copy_bytes.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/pool.hpp>

namespace fanout { inline namespace v0 {

namespace backend {

/// What can be done with the memory of one kind of device, as a table of functions, so that a Tensor of one type may
/// live in any memory. They happen in order with the work of the device that owns the memory; in host memory, and
/// where `wait` is null, they have happened when they return.
///
/// 1. `allocate` returns `bytes` bytes (at least one), aligned to `memory_alignment`, or throws OutOfMemory.
/// 2. `release` gives back what `allocate` of the same table returned, from any thread; it never throws. `owner` is
///    what the storage was made with, null for what was allocated.
/// 3. `copy` and `clear` stay within one memory space.
/// 4. `fresh` is the table for new memory of the same space: the table itself unless it stands for adopted memory.
/// 5. `transfer` copies between two spaces: one is of this kind, the other of this kind or the host's memory. What goes
///    to the host has got there when it returns, and what comes from there has been read. Null if it cannot.
/// 6. `bring` is `allocate` and `transfer` of host memory in one, so that it need not be in order with earlier work of
///    the device, which does not know this memory. Null where that is no better.
/// 7. `wait` returns when all that the thread has done in the space has happened, and throws what failed of it. Each
///    call of a model waits for the spaces of its arguments, so it should cost little if nothing is in flight.
/// 8. `windows` is the table for parts of an OutputBuffer in the same space: see window_operations(). Null if there are
///    none; then parts are copied.
struct MemoryOperations {
  void* (*allocate)(const MemorySpace& space, std::size_t bytes);
  void (*release)(const MemorySpace& space, void* data, std::size_t bytes, void* owner) noexcept;
  void (*copy)(const MemorySpace& space, void* to, const void* from, std::size_t bytes);
  void (*clear)(const MemorySpace& space, void* data, std::size_t bytes);
  const MemoryOperations* fresh;
  void (*transfer)(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                   std::size_t bytes) = nullptr;
  void* (*bring)(const MemorySpace& to, const void* from_data, std::size_t bytes) = nullptr;
  void (*wait)(const MemorySpace& space) = nullptr;
  const MemoryOperations* windows = nullptr;
};

/// Bytes to which every array's first element is aligned: a cache line, and the widest vector registers.
inline constexpr std::size_t memory_alignment = detail::smallest_block;

}  // namespace backend

namespace detail {

inline void* allocate_host(const MemorySpace&, std::size_t bytes) {
  if (void* const data = pool.take(bytes)) return data;
  refuse_bytes(bytes);
}

inline void release_host(const MemorySpace&, void* data, std::size_t bytes, void*) noexcept { pool.give(data, bytes); }

inline void copy_host(const MemorySpace&, void* to, const void* from, std::size_t bytes) {
  copy_bytes(to, from, bytes);
}

inline void clear_host(const MemorySpace&, void* data, std::size_t bytes) {
  if (bytes != 0) std::memset(data, 0, bytes);
}

}  // namespace detail

namespace backend {

inline constexpr MemoryOperations host_memory_operations{
    &detail::allocate_host, &detail::release_host, &detail::copy_host, &detail::clear_host, &host_memory_operations};

/// A memory and what can be done with it: where a tensor is to be made.
struct Memory {
  MemorySpace space = host_memory;
  const MemoryOperations* operations = &host_memory_operations;
};

}  // namespace backend

}}  // namespace fanout::v0
