// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/base/requirements.hpp>
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
inline void declare_memory(DeviceKind kind, const MemoryOperations& operations) {
  if (detail::find_memory(kind) != nullptr) return;
  auto* declared =
      new detail::KnownMemory{kind, &operations, detail::known_memories.load(detail::MemoryOrder::acquire)};
  while (!detail::known_memories.compare_exchange_strong(declared->next, declared, detail::MemoryOrder::acq_rel)) {
  }
}

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

[[noreturn]] inline void refuse_transfer(const MemorySpace& to, const MemorySpace& from) {
  throw DeviceMismatch(explain({.what = two_devices(to, from) + ", and no transfer is known between them",
                                .expected = to_string(to),
                                .found = to_string(from),
                                .advice = "define MemoryOperations::transfer for the kind of device that owns the "
                                          "memory"}));
}

}  // namespace detail

namespace backend {

/// Copies bytes from any memory to any other. A copy to the host is complete on return. A copy to a device is in order
/// with the work of the device that owns the target. Sources in host memory have been read on return. Other sources are
/// read before anything that is done there afterwards. Throws DeviceMismatch if there is no way between the memories,
/// and what their operations throw.
inline void transfer(const Memory& to, void* to_data, const MemorySpace& from, const void* from_data,
                     std::size_t bytes) {
  if (bytes == 0) return;
  if (to.space == from) return to.operations->copy(from, to_data, from_data, bytes);
  if (!can_transfer(to, from)) detail::refuse_transfer(to.space, from);
  detail::log_transfer(to.space, from, bytes);
  if (!(to.space == host_memory) && (from == host_memory || from.owner.kind == to.space.owner.kind)) {
    return to.operations->transfer(to.space, to_data, from, from_data, bytes);
  }
  const Memory source = memory_of(from);
  if (to.space == host_memory) return source.operations->transfer(to.space, to_data, from, from_data, bytes);
  struct Stop {
    void* data;
    std::size_t bytes;
    ~Stop() { host_memory_operations.release(host_memory, data, bytes, nullptr); }
  } const stop{host_memory_operations.allocate(host_memory, bytes), bytes};
  source.operations->transfer(host_memory, stop.data, from, from_data, bytes);
  to.operations->transfer(to.space, to_data, host_memory, stop.data, bytes);
}

}  // namespace backend

namespace detail {

/// The operations that copy several arrays at once from one space to another, or within one. Null if there are none.
inline const backend::MemoryOperations* joint_operations(const backend::Memory& to, const MemorySpace& from) noexcept {
  const bool is_near = from == host_memory || to.space == host_memory || from.owner.kind == to.space.owner.kind;
  if (!is_near) return nullptr;
  const backend::MemoryOperations* const by = to.space == host_memory ? find_memory(from.owner.kind) : to.operations;
  return by != nullptr && by->transfer_all != nullptr ? by : nullptr;
}

}  // namespace detail

namespace backend {

/// Makes several transfers to one memory, in any order, also of no bytes. Those from different devices run at the same
/// time if their memory has a `transfer_all`. When this returns, they are as after transfer(). Reorders the array.
/// Throws what transfer() throws.
inline void transfer_all(const Memory& to, Transfer* transfers, std::size_t count) {
  while (count != 0) {
    const MemoryOperations* const by = detail::joint_operations(to, transfers[0].from);
    std::size_t same = 1;
    if (by == nullptr) {
      transfer(to, transfers[0].to_data, transfers[0].from, transfers[0].from_data, transfers[0].bytes);
    } else {
      for (std::size_t i = 1; i < count; ++i) {
        if (detail::joint_operations(to, transfers[i].from) == by) detail::swap(transfers[same++], transfers[i]);
      }
      for (std::size_t i = 0; i < same; ++i) {
        if (!(transfers[i].from == to.space)) detail::log_transfer(to.space, transfers[i].from, transfers[i].bytes);
      }
      by->transfer_all(to.space, transfers, same);
    }
    transfers += same;
    count -= same;
  }
}

/// Allocates memory and copies bytes from any memory into it. A copy from the host, or from another memory of the same
/// kind, overlaps with earlier work of the device if the memory has a `transfer_in`.
inline void* transfer_in(const Memory& to, const MemorySpace& from, const void* from_data, std::size_t bytes) {
  const MemoryOperations& operations = *to.operations->fresh;
  const bool is_near = from == host_memory || (from.owner.kind == to.space.owner.kind && !(from == to.space));
  if (is_near && operations.transfer_in != nullptr) {
    detail::log_transfer(to.space, from, bytes);
    return operations.transfer_in(to.space, from, from_data, bytes);
  }
  void* const data = operations.allocate(to.space, bytes);
  try {
    transfer({to.space, &operations}, data, from, from_data, bytes);
  } catch (...) {
    operations.release(to.space, data, bytes, nullptr);
    throw;
  }
  return data;
}

/// Waits until all that this thread has done in a memory is done. Throws the error of what failed.
inline void wait_for(const Memory& memory) {
  if (memory.operations->wait != nullptr) memory.operations->wait(memory.space);
}

}  // namespace backend

}}  // namespace fanout::v0
