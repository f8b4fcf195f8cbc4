// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdint>

#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Bytes that are held, and the most that were. Thread-safe.
class HeldBytes {
 public:
  std::uint64_t now() const noexcept { return now_.load(fanout::detail::MemoryOrder::relaxed); }
  std::uint64_t most() const noexcept { return most_.load(fanout::detail::MemoryOrder::relaxed); }

  void add(std::uint64_t bytes) noexcept {
    const std::uint64_t sum = now_.fetch_add(bytes, fanout::detail::MemoryOrder::relaxed) + bytes;
    std::uint64_t before = most();
    while (before < sum && !most_.compare_exchange_weak(before, sum, fanout::detail::MemoryOrder::relaxed)) {
    }
  }
  void subtract(std::uint64_t bytes) noexcept { now_.fetch_sub(bytes, fanout::detail::MemoryOrder::relaxed); }
  void reset_most() noexcept { most_.store(now(), fanout::detail::MemoryOrder::relaxed); }

 private:
  fanout::detail::Atomic<std::uint64_t> now_{0};
  fanout::detail::Atomic<std::uint64_t> most_{0};
};

}}}  // namespace fanout::v0::cuda::detail
