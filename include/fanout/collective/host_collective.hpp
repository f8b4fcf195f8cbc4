// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The result of comparing two ranks' calls of one collective, or a send and its recv.
enum class Fit : unsigned char { fits, other_structure, other_shape };

FANOUT_INLINE Fit fit(const backend::Collective& a, const backend::Collective& b);

inline void copy_elements(void* to, const void* from, std::size_t bytes) noexcept {
  if (to != from && bytes != 0) std::memcpy(to, from, bytes);
}

/// One collective in host memory, of which each rank does a part. `calls[i]` is the call of rank i. All ranks do their
/// parts at the same time; no rank writes what another one reads or writes.
class HostCollective {
 public:
  HostCollective(const backend::Collective* const* calls, std::size_t ranks) noexcept : calls_(calls), ranks_(ranks) {}

  /// Does this rank's part. `turn` is the number of the collective: one rank does a small one alone, and the ranks take
  /// turns.
  FANOUT_INLINE void run_part_of(std::size_t rank, std::size_t turn) const noexcept;

 private:
  static constexpr std::size_t block_bytes = 4096;

  /// Reduces this rank's share of the elements and writes it to all ranks that get the result.
  FANOUT_INLINE void reduce_share(std::size_t rank, std::size_t turn) const noexcept;

  /// Calls `f(block, begin, count)` for one block of elements after another. `block` is memory for `count` elements.
  template <class F>
  static void for_blocks(const backend::Collective& call, std::size_t begin, std::size_t end, const F& f) noexcept {
    alignas(cache_line) std::byte block[block_bytes];
    const std::size_t most = block_bytes / call.type->size;
    while (begin < end) {
      const std::size_t count = end - begin < most ? end - begin : most;
      f(block, begin, count);
      begin += count;
    }
  }

  /// Writes to `block` the reduction of all ranks' elements [begin, begin + count).
  FANOUT_INLINE void reduce(void* block, std::size_t begin, std::size_t count) const noexcept;

  const void* at(const void* data, std::size_t element) const noexcept {
    return static_cast<const std::byte*>(data) + element * calls_[0]->type->size;
  }
  void* at(void* data, std::size_t element) const noexcept {
    return static_cast<std::byte*>(data) + element * calls_[0]->type->size;
  }

  const backend::Collective* const* calls_;
  std::size_t ranks_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/collective/host_collective.ipp>
#endif
