// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/device_id.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// A shard that had not ended at the deadline of its call: its position in the plan, its device, and its rows in the
/// whole batch.
struct LateShard {
  std::size_t shard = 0;
  DeviceId device{.kind = "host", .index = 0};
  RowRange rows;

  friend bool operator==(const LateShard&, const LateShard&) = default;
};

}}  // namespace fanout::v0
