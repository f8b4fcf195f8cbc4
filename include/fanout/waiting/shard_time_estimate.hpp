// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Estimates how long a shard of a model takes, in Ticks: from earlier calls, in proportion to the rows. Thread-safe.
class ShardTimeEstimate {
 public:
  static constexpr std::int64_t unknown = -1;

  /// Returns the expected Ticks of a shard with `rows` rows, or `unknown` before the first note().
  std::int64_t expected(std::size_t rows) const noexcept {
    const std::uint64_t seen = seen_.load(MemoryOrder::relaxed);
    if (seen == 0) return unknown;
    return in_proportion(static_cast<std::int64_t>(seen >> 32U), seen & low_half, capped(rows));
  }

  /// Notes that a shard of so many rows took so long. One preempted shard changes the estimate by little more than a
  /// factor of two.
  void note(std::size_t rows, std::int64_t ticks) noexcept { note(rows, ticks, expected(rows)); }
  /// The same, if the caller knows expected(rows).
  void note(std::size_t rows, std::int64_t ticks, std::int64_t before) noexcept {
    const std::int64_t took = ticks < 0 ? 0 : ticks;
    const std::int64_t most = 2 * before + 200;
    const std::int64_t now = before == unknown ? took
                             : took > before   ? (took < most ? took : most)
                                               : (took + before) / 2;
    constexpr std::int64_t longest = 0x7fffffff;  // about a second: far longer than any time that matters here
    const auto kept = static_cast<std::uint64_t>(now < 1 ? 1 : now > longest ? longest : now);
    seen_.store(kept << 32U | capped(rows), MemoryOrder::relaxed);
  }

 private:
  static constexpr std::uint64_t low_half = 0xffffffffU;

  static std::uint64_t capped(std::size_t rows) noexcept { return rows < low_half ? rows : low_half; }
  static std::int64_t in_proportion(std::int64_t time, std::uint64_t of_rows, std::uint64_t rows) noexcept {
    if (rows == of_rows || rows == 0 || of_rows == 0) return time;
    return static_cast<std::int64_t>(static_cast<double>(time) * static_cast<double>(rows) /
                                     static_cast<double>(of_rows));
  }

  Atomic<std::uint64_t> seen_{0};  // ticks and rows in one word, so that they belong together
};

}}}  // namespace fanout::v0::detail
