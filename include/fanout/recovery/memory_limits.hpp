// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How many rows of a batch fit into the memory of each device at a time, for each shape of the arguments that was too
/// large once. Thread-safe.
class MemoryLimits {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  /// From now on a device gets at most so many rows at a time. Returns false if that was known already, and for no
  /// rows. Throws std::bad_alloc.
  FANOUT_INLINE bool note(std::uint64_t shape, std::size_t device, std::size_t rows);

  /// Forgets the limits of a device: all of them, or that for one shape.
  FANOUT_INLINE void forget(std::size_t device) noexcept;
  FANOUT_INLINE void forget(std::uint64_t shape, std::size_t device) noexcept;

  /// How many rows a device gets at a time; `none` if nothing is known.
  FANOUT_INLINE std::size_t most(std::uint64_t shape, std::size_t device) const noexcept;
  /// The same for all shapes: the least.
  FANOUT_INLINE std::size_t most(std::size_t device) const noexcept;

  /// The plan within the limits. A device keeps its rows. A shard that does not fit is cut into equal parts, as few as
  /// possible. The shards of a limited device run in turns.
  FANOUT_INLINE Plan applied_to(const Plan& plan, std::uint64_t shape) const;

 private:
  struct Limit {
    std::uint64_t shape = 0;
    std::size_t device = 0;
    std::size_t rows = 0;

    bool is_for(std::uint64_t other_shape, std::size_t other_device) const noexcept {
      return shape == other_shape && device == other_device;
    }
  };

  std::vector<Limit> limits_;
  mutable ForkSafeMutex mutex_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/recovery/memory_limits.ipp>
#endif
