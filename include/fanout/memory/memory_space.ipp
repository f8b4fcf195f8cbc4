// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/memory_space.hpp>

#include <string>

namespace fanout { inline namespace v0 {

std::string to_string(const MemorySpace& space) {
  return space.owner.kind == host_memory.owner.kind ? "host memory" : "the memory of " + to_string(space.owner);
}

namespace detail {

std::string two_devices(const MemorySpace& one, const MemorySpace& other) {
  return "Expected all tensors to be on the same device, but found at least two devices, " + to_string(one.owner) +
         " and " + to_string(other.owner);
}

}  // namespace detail

}}  // namespace fanout::v0
