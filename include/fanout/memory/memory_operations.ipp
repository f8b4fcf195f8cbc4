// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/memory_operations.hpp>

#include <cstddef>
#include <cstring>

#include <fanout/memory/copy_bytes.hpp>
#include <fanout/memory/pool.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void* allocate_host(const MemorySpace&, std::size_t bytes) {
  if (void* const data = pool.take(bytes)) return data;
  refuse_bytes(bytes);
}

void release_host(const MemorySpace&, void* data, std::size_t bytes, void*) noexcept { pool.give(data, bytes); }

void copy_host(const MemorySpace&, void* to, const void* from, std::size_t bytes) { copy_bytes(to, from, bytes); }

void clear_host(const MemorySpace&, void* data, std::size_t bytes) {
  if (bytes != 0) std::memset(data, 0, bytes);
}

}}}  // namespace fanout::v0::detail
