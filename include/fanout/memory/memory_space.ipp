// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/memory_space.hpp>

#include <string>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 {

std::string to_string(const MemorySpace& space) {
  if (space.owner.kind == host_memory.owner.kind) return "host memory";
  return detail::Text() << "the memory of " << space.owner;
}

namespace detail {

std::string two_devices(const MemorySpace& one, const MemorySpace& other) {
  return Text() << "Expected all tensors to be on the same device, but found at least two devices, " << one.owner
                << " and " << other.owner;
}

}  // namespace detail

}}  // namespace fanout::v0
