// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <fanout/base/device_id.hpp>

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
inline std::string to_string(const MemorySpace& space) {
  return space.owner.kind == host_memory.owner.kind ? "host memory" : "the memory of " + to_string(space.owner);
}

namespace detail {

/// PyTorch's words, which people search for.
inline std::string two_devices(const MemorySpace& one, const MemorySpace& other) {
  return "Expected all tensors to be on the same device, but found at least two devices, " + to_string(one.owner) +
         " and " + to_string(other.owner);
}

}  // namespace detail

}}  // namespace fanout::v0
