// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nvtx3/nvToolsExt.h>

#include <fanout/measure/profiler_ranges.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Ranges of NVTX, which Nsight Systems and others show. Without a tool, each costs some nanoseconds.
struct NvtxRange {
  /// Cuts long names.
  static void begin(std::string_view stage, std::string_view model, std::uint64_t number) noexcept {
    static const bool initialized = (::nvtxInitialize(nullptr), true);  // NVTX sets its pointers without an order
    static_cast<void>(initialized);
    char name[128];
    const std::size_t front = stage.copy(name, sizeof name - 1);
    name[front + model.copy(name + front, sizeof name - 1 - front)] = '\0';
    nvtxEventAttributes_t range{};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    range.payload.ullValue = number;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = name;
    static_cast<void>(::nvtxRangePushEx(&range));
  }
  static void end() noexcept { static_cast<void>(::nvtxRangePop()); }
};

inline constexpr ProfilerRanges nvtx_ranges{.begin = &NvtxRange::begin, .end = &NvtxRange::end};
inline const bool nvtx_is_known = (profiler_ranges.store(&nvtx_ranges, MemoryOrder::release), true);

}}}  // namespace fanout::v0::detail
#endif
