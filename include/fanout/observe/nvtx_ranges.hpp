// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <cstdint>
#include <string_view>

#include <nvtx3/nvToolsExt.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/measure/profiler_ranges.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Ranges of NVTX, which Nsight Systems and others show. Without a tool, each costs some nanoseconds.
struct NvtxRange {
  /// Cuts long names.
  FANOUT_INLINE static void begin(std::string_view stage, std::string_view model, std::uint64_t number) noexcept;
  static void end() noexcept { static_cast<void>(::nvtxRangePop()); }
};

inline constexpr ProfilerRanges nvtx_ranges{.begin = &NvtxRange::begin, .end = &NvtxRange::end};
inline const bool nvtx_is_known = (profiler_ranges.store(&nvtx_ranges, MemoryOrder::release), true);

}}}  // namespace fanout::v0::detail
#endif

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/observe/nvtx_ranges.ipp>
#endif
