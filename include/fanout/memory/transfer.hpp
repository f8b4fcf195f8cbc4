// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer_log.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A kind of memory that was declared.
struct KnownMemory {
  DeviceKind kind;
  const backend::MemoryOperations* operations;
  const KnownMemory* next;
};

[[gnu::visibility("default")]] inline Atomic<const KnownMemory*> known_memories{nullptr};

inline const backend::MemoryOperations* find_memory(DeviceKind kind) noexcept {
  const KnownMemory* known = known_memories.load(MemoryOrder::acquire);
  while (known != nullptr && known->kind != kind) known = known->next;
  return known == nullptr ? nullptr : known->operations;
}

/// False if the process has no memory but the host's. A thread that has an array elsewhere sees true.
inline bool knows_device_memory() noexcept { return known_memories.load(MemoryOrder::relaxed) != nullptr; }

}  // namespace detail

namespace backend {

/// Declares the operations for the memories of a kind of device, so that they are found by an array's memory space. The
/// first declaration for a kind counts. A device declares them before anything is in its memory.
[[gnu::cold]] FANOUT_INLINE void declare_memory(DeviceKind kind, const MemoryOperations& operations);

/// A memory space and its operations. These are null if the kind of memory was not declared.
inline Memory memory_of(const MemorySpace& space) noexcept {
  if (space.owner.kind == host_memory.owner.kind) return {};
  return {space, detail::find_memory(space.owner.kind)};
}

}  // namespace backend

namespace detail {

inline bool reached_from_host(const backend::Memory& memory) noexcept {
  return memory.space == host_memory || (memory.operations != nullptr && memory.operations->transfer != nullptr);
}

}  // namespace detail

namespace backend {

/// True if transfer() can copy from one memory to the other.
inline bool can_transfer(const Memory& to, const MemorySpace& from) noexcept {
  return to.space == from || (detail::reached_from_host(to) && detail::reached_from_host(memory_of(from)));
}

}  // namespace backend

namespace detail {

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_transfer(const MemorySpace& to, const MemorySpace& from);

}  // namespace detail

namespace backend {

/// Copies bytes from any memory to any other. A copy to the host is complete on return. A copy to a device is in order
/// with the work of the device that owns the target. Sources in host memory have been read on return. Other sources are
/// read before anything that is done there afterwards. Throws DeviceMismatch if there is no way between the memories,
/// and what their operations throw.
FANOUT_INLINE void transfer(const Memory& to, void* to_data, const MemorySpace& from, const void* from_data,
                            std::size_t bytes);

}  // namespace backend

namespace detail {

/// The operations that copy several arrays at once from one space to another, or within one. Null if there are none.
FANOUT_INLINE const backend::MemoryOperations* joint_operations(const backend::Memory& to,
                                                                const MemorySpace& from) noexcept;

}  // namespace detail

namespace backend {

/// Makes several transfers to one memory, in any order, also of no bytes. Those from different devices run at the same
/// time if their memory has a `transfer_all`. When this returns, they are as after transfer(). Reorders the array.
/// Throws what transfer() throws.
FANOUT_INLINE void transfer_all(const Memory& to, Transfer* transfers, std::size_t count);

/// Allocates memory and copies bytes from any memory into it. A copy from the host, or from another memory of the same
/// kind, overlaps with earlier work of the device if the memory has a `transfer_in`.
FANOUT_INLINE void* transfer_in(const Memory& to, const MemorySpace& from, const void* from_data, std::size_t bytes);

/// Waits until all that this thread has done in a memory is done. Throws the error of what failed.
inline void wait_for(const Memory& memory) {
  if (memory.operations->wait != nullptr) memory.operations->wait(memory.space);
}

}  // namespace backend

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/memory/transfer.ipp>
#endif
