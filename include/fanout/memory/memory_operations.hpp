// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/copy_bytes.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/pool.hpp>

namespace fanout { inline namespace v0 {

namespace backend {

/// A copy of bytes from one memory space to another one, or within it.
struct Transfer {
  void* to_data = nullptr;
  MemorySpace from = host_memory;
  const void* from_data = nullptr;
  std::size_t bytes = 0;
};

/// The operations of the memory of one kind of device: a table of functions, so that one type of Tensor can be in any
/// memory. They run in order with the work of the device that owns the memory. In host memory, and if `wait` is null,
/// they have ended when they return.
///
/// 1. `allocate` returns `bytes` bytes (at least one), aligned to `memory_alignment`, or throws OutOfMemory.
/// 2. `release` releases what `allocate` of the same table returned, from any thread. It never throws. `owner` is what
///    the storage was made with, null for allocated memory.
/// 3. `copy` and `clear` stay within one memory space.
/// 4. `fresh` is the table for new memory of the same space: the table itself, unless it stands for adopted memory.
/// 5. `transfer` copies between two spaces: one of this kind, the other of this kind or the host's. When it returns,
///    data for the host has arrived, and data from the host has been read. Null if it cannot.
/// 6. `transfer_in` is `allocate` and `transfer` in one, from the same spaces. It need not be in order with earlier
///    work of the device, which does not know this memory. Null if that is no better.
/// 7. `wait` waits until all that the thread has done in the space is done, and throws the error of what failed. Each
///    call of a model waits for the spaces of its arguments, so it should cost little if nothing is in flight.
/// 8. `allocate_for_all` is `allocate` for memory that several devices use at once. It waits for the work of none of
///    them, and any of them may use the memory when it returns. Null if `allocate` is like that.
/// 9. `transfer_all` makes several transfers to one space, and copies within it if it is of this kind, in any order.
///    Those from different devices run at the same time. Null if they would run one after the other.
/// 10. `windows` is the table for parts of an OutputBuffer in the same space: see window_operations(). Null if there is
///    none; parts are then copied.
/// 11. `borrowed` is the table for bytes in the same space that the caller owns: see borrowed_operations(). Null if
///    devices cannot write results there; results are then made elsewhere and copied.
/// 12. `scratch` is the table for memory of the same space that a shard uses while it runs, and that is released at its
///    end. A copy that its `transfer_in` makes may begin later: see requirement 12 of Device. Null if there is none.
/// 13. `can_send` is true if `send` can copy these bytes, which the thread that has entered the device of this memory
///    has made. Null if nothing can be sent.
/// 14. `send` begins to copy from this memory to the host's, or to another one of the same kind, which is the caller's
///    or comes from allocate_for_all(). The copy is in order with the work of the device that the thread has entered.
///    It is done when the completion() that the thread asks for next has been waited for. Throws what `transfer`
///    throws.
/// 15. `host_access` is true if the host may read and write the memory in place, like managed memory. The elements of a
///    tensor there can then be used on the host. Nothing waits for the device's work first.
struct MemoryOperations {
  void* (*allocate)(const MemorySpace& space, std::size_t bytes);
  void (*release)(const MemorySpace& space, void* data, std::size_t bytes, void* owner) noexcept;
  void (*copy)(const MemorySpace& space, void* to, const void* from, std::size_t bytes);
  void (*clear)(const MemorySpace& space, void* data, std::size_t bytes);
  const MemoryOperations* fresh;
  void (*transfer)(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                   std::size_t bytes) = nullptr;
  void* (*transfer_in)(const MemorySpace& to, const MemorySpace& from, const void* from_data,
                       std::size_t bytes) = nullptr;
  void (*wait)(const MemorySpace& space) = nullptr;
  void* (*allocate_for_all)(const MemorySpace& space, std::size_t bytes) = nullptr;
  void (*transfer_all)(const MemorySpace& to, const Transfer* transfers, std::size_t count) = nullptr;
  const MemoryOperations* windows = nullptr;
  const MemoryOperations* borrowed = nullptr;
  const MemoryOperations* scratch = nullptr;
  bool (*can_send)(const MemorySpace& to, const MemorySpace& from, const void* from_data, std::size_t bytes) = nullptr;
  void (*send)(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
               std::size_t bytes) = nullptr;
  bool host_access = false;
};

/// The alignment of every array's first element, in bytes: a cache line, and the widest vector registers.
inline constexpr std::size_t memory_alignment = detail::smallest_block;

}  // namespace backend

namespace detail {

FANOUT_INLINE void* allocate_host(const MemorySpace&, std::size_t bytes);

FANOUT_INLINE void release_host(const MemorySpace&, void* data, std::size_t bytes, void*) noexcept;

FANOUT_INLINE void copy_host(const MemorySpace&, void* to, const void* from, std::size_t bytes);

FANOUT_INLINE void clear_host(const MemorySpace&, void* data, std::size_t bytes);

}  // namespace detail

namespace backend {

/// What can be done with host memory.
inline constexpr MemoryOperations host_memory_operations{
    &detail::allocate_host, &detail::release_host, &detail::copy_host, &detail::clear_host, &host_memory_operations};

/// A memory and its operations: tells where a tensor is made.
struct Memory {
  MemorySpace space = host_memory;
  const MemoryOperations* operations = &host_memory_operations;
};

}  // namespace backend

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/memory/memory_operations.ipp>
#endif
