// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 {

/// A memory, named by the device that owns it. All host devices share one memory, named `host:0`. Data is used in place
/// if its memory space equals the one that is needed, and copied otherwise. Devices are never compared for that.
struct MemorySpace {
  DeviceId owner;

  friend constexpr bool operator==(const MemorySpace&, const MemorySpace&) = default;
};

/// The memory that the process's own threads read and write.
inline constexpr MemorySpace host_memory{{.kind = "host", .index = 0}};

/// The memory as text: `host memory`, `the memory of cuda:1`.
[[gnu::cold]] FANOUT_INLINE std::string to_string(const MemorySpace& space);

namespace detail {

/// PyTorch's words, which people search for.
[[gnu::cold]] FANOUT_INLINE std::string two_devices(const MemorySpace& one, const MemorySpace& other);

}  // namespace detail

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/memory/memory_space.ipp>
#endif
