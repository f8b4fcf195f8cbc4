// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string_view>

#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How a profiler is told what a thread does: `begin` begins a range inside of those that the thread has begun, `end`
/// ends the latest. `number` is shown beside the name.
struct ProfilerRanges {
  void (*begin)(std::string_view stage, std::string_view model, std::uint64_t number) noexcept;
  void (*end)() noexcept;
};

/// Null if no profiler is known. Set by whoever knows one, before calls are measured.
[[gnu::visibility("default")]] inline Atomic<const ProfilerRanges*> profiler_ranges{nullptr};

/// What a thread does in a measured call, as a range for a profiler: nothing, or one stage after the other. Used by one
/// thread. Whoever begins a range ends it.
struct ProfilerRange {
  const ProfilerRanges* open = nullptr;

  /// Ends the stage before.
  void begin(std::string_view stage, std::string_view model, std::uint64_t number) noexcept {
    end();
    open = profiler_ranges.load(MemoryOrder::acquire);
    if (open != nullptr) open->begin(stage, model, number);
  }
  void end() noexcept {
    if (open != nullptr) open->end();
    open = nullptr;
  }
};

}}}  // namespace fanout::v0::detail
