// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstring>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A copy of this many bytes or more is streamed: its stores bypass the caches. A target that does not fit into the
/// caches would be read from memory before it is overwritten, which costs up to half of the bandwidth. A target that
/// fits should stay in the caches for its next reader.
inline constexpr std::size_t streamed_from = std::size_t{1} << 21;

/// Copies bytes with stores that bypass the caches, where the processor has such. Other threads see them after
/// settle_streams().
FANOUT_INLINE void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Orders streamed bytes before all later writes of this thread.
FANOUT_INLINE void settle_streams() noexcept;

/// memcpy(), streamed from `streamed_from` bytes on. The addresses may be null if there are no bytes.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes >= streamed_from) {
    stream_bytes(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
    settle_streams();
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/memory/copy_bytes.ipp>
#endif
