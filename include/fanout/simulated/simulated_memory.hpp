// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/simulated/entered_simulated.hpp>
#include <fanout/simulated/simulated_state.hpp>
#include <fanout/simulated/simulated_states.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The device whose memory this is. Null for host memory.
inline SimulatedState* simulated_owner(const MemorySpace& space) noexcept {
  return space == host_memory ? nullptr : &simulated_states[space.owner.index];
}

/// The thread waits for all that the device was given.
inline void await_simulated(SimulatedState& state) noexcept { callers_time(state).raise(state.done()); }

FANOUT_INLINE void* allocate_simulated(const MemorySpace& space, std::size_t bytes);

inline void release_simulated(const MemorySpace& space, void* data, std::size_t bytes, void*) noexcept {
  backend::host_memory_operations.release(host_memory, data, bytes, nullptr);
  simulated_states[space.owner.index].give_back(bytes);
}

/// Copies inside of a memory, and clearing it, take no time. They are in order with the device's shards.
FANOUT_INLINE void copy_simulated(const MemorySpace& space, void* to, const void* from, std::size_t bytes);

FANOUT_INLINE void clear_simulated(const MemorySpace& space, void* data, std::size_t bytes);

/// Copies over the links of the devices that own these memories, one of which may be the host's. Each link carries one
/// copy at a time each way. The thread waits.
FANOUT_INLINE void transfer_simulated(const MemorySpace& to, void* to_data, const MemorySpace& from,
                                      const void* from_data, std::size_t bytes);

/// Copies over different links happen at the same time.
FANOUT_INLINE void transfer_all_simulated(const MemorySpace& to, const backend::Transfer* transfers, std::size_t count);

/// The tables for a simulated device's memory, and for bytes there that the caller owns.
struct SimulatedTables {
  static const backend::MemoryOperations memory;
  static const backend::MemoryOperations borrowed;
};
inline constexpr backend::MemoryOperations SimulatedTables::memory{.allocate = &allocate_simulated,
                                                                   .release = &release_simulated,
                                                                   .copy = &copy_simulated,
                                                                   .clear = &clear_simulated,
                                                                   .fresh = &memory,
                                                                   .transfer = &transfer_simulated,
                                                                   .transfer_all = &transfer_all_simulated,
                                                                   .borrowed = &borrowed,
                                                                   .host_access = true};
inline constexpr backend::MemoryOperations SimulatedTables::borrowed = borrowed_operations(memory);

}  // namespace detail

namespace backend {

/// The operations on the memory of a simulated device: bytes of the host that the device counts, and copies that take
/// virtual time. A thread that has entered no device of the simulation waits for them, in virtual time. There are no
/// `windows`: small arrays would then share buffers of 256 KiB, and a limit of memory would not be one of their bytes.
inline constexpr const MemoryOperations& simulated_memory_operations = detail::SimulatedTables::memory;

}  // namespace backend

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/simulated/simulated_memory.ipp>
#endif
