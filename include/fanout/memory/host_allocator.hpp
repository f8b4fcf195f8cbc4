// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// Allocates host memory for new tensors. By default that of all tensors.
struct HostAllocator {
  /// Returns `bytes` bytes of host memory, aligned to `memory_alignment`. Their values are unset. The caller owns them.
  /// Several threads may call it at once. Throws OutOfMemory. If null, memory comes from where all tensors have it.
  detail::Storage (*allocate)(std::size_t bytes) = nullptr;

  /// Allocates. Throws OutOfMemory, and what `allocate` throws.
  detail::Storage operator()(std::size_t bytes) const {
    return allocate == nullptr ? detail::Storage(Memory{}, bytes) : allocate(bytes);
  }
};

}}}  // namespace fanout::v0::backend
