// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/observe/nvtx_ranges.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace detail {

void NvtxRange::begin(std::string_view stage, std::string_view model, std::uint64_t number) noexcept {
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

}}}  // namespace fanout::v0::detail
